// Speed and volume of language models: the sound is the model's, stretched and scaled.
#include "runtime/engine/prosody.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/engine/engine_testing.h"
#include "shoal/engine.h"

namespace shoal::runtime {
namespace {

using testing::code_of;
using testing::short_request;
using testing::tiny_config;

SpeechRequest long_request() {
  SpeechRequest request =
      short_request("One fish swims under a cold moon, slowly. Another one follows it.", 40);
  request.chunk_length = 50;
  request.quirks.keep_last_frame_without_end = true;
  return request;
}

std::vector<float> stretched(const std::vector<float>& sound, int rate_hz, double speed) {
  audio::TimeStretch stretch(rate_hz, speed);
  std::vector<float> out;
  stretch.push(sound, out);
  stretch.finish(out);
  return out;
}

class ProsodyOfSpeech : public ::testing::Test {
 protected:
  ProsodyOfSpeech() { engine.start(); }
  Engine engine{tiny_config()};
};

TEST_F(ProsodyOfSpeech, SpeedStretchesTheWholeSoundHoweverItIsDelivered) {
  Speech usual = engine.submit(long_request());
  const std::vector<float> sound = usual.read_all();
  const std::vector<int32_t> codes = usual.codes();
  ASSERT_GT(usual.summary().utterances, 1);
  for (const double speed : {0.25, 0.5, 1.5, 2.0, 4.0})
    for (const Delivery delivery : {Delivery::streaming, Delivery::whole}) {
      SpeechRequest request = long_request();
      request.speed = speed;
      request.delivery = delivery;
      Speech speech = engine.submit(request);
      const std::vector<float> heard = speech.read_all();
      EXPECT_TRUE(heard == stretched(sound, engine.sample_rate_hz(), speed)) << speed;
      EXPECT_EQ(speech.codes(), codes) << "the model speaks as before";
      EXPECT_EQ(speech.summary().samples, std::ssize(heard));
      EXPECT_EQ(speech.progress().audio_s, speech.summary().audio_s());
    }
}

TEST_F(ProsodyOfSpeech, VolumeScalesAndClips) {
  const std::vector<float> sound = engine.submit(long_request()).read_all();
  for (const float volume : {0.0f, 0.5f, 10.0f}) {
    SpeechRequest request = long_request();
    request.volume = volume;
    std::vector<float> want = sound;
    for (float& sample : want) sample = std::clamp(sample * volume, -1.0f, 1.0f);
    EXPECT_TRUE(engine.submit(request).read_all() == want) << volume;
    request.speed = 2;
    want = stretched(sound, engine.sample_rate_hz(), 2);
    for (float& sample : want) sample = std::clamp(sample * volume, -1.0f, 1.0f);
    EXPECT_TRUE(engine.submit(request).read_all() == want) << volume << ", faster";
  }
}

TEST_F(ProsodyOfSpeech, CallbacksAndBatchesGetTheSameSound) {
  SpeechRequest request = long_request();
  request.speed = 0.6;
  request.volume = 0.7f;
  const std::vector<float> want = engine.submit(request).read_all();
  const std::vector<BatchResult> results = engine.generate_batch({request, long_request(), request});
  EXPECT_TRUE(results[0].samples == want);
  EXPECT_TRUE(results[2].samples == want);
  EXPECT_FALSE(results[1].samples == want);
  EXPECT_EQ(results[0].summary.samples, std::ssize(want));
}

TEST_F(ProsodyOfSpeech, ValuesOutOfRangeAreRefusedByName) {
  const auto refused = [&](double speed, float volume) {
    SpeechRequest request = short_request();
    request.speed = speed;
    request.volume = volume;
    return code_of([&] { engine.submit(request); });
  };
  for (const double speed : {0.0, 0.2, 4.1, std::nan("")})
    EXPECT_EQ(refused(speed, 1), ErrorCode::invalid_argument) << speed;
  for (const float volume : {-0.1f, 10.1f, std::nanf("")})
    EXPECT_EQ(refused(1, volume), ErrorCode::invalid_argument) << volume;
}

}  // namespace
}  // namespace shoal::runtime
