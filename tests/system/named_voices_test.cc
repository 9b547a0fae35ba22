// The named voices that come with the built-in voice: each is followed, and each is another one.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>

#include "audio/clip.h"
#include "ops/device_testing.h"
#include "shoal/engine.h"

namespace shoal {
namespace {

const std::string kVoices = std::string(SHOAL_SOURCE_DIR) + "/voice/voices";

// Normalised autocorrelation of a window of 64 ms at every lag of 60 to 400 Hz; the pitch where a peak comes
// near the best one first, against octave errors. 0: unvoiced or silent.
double pitch_of(const float* window, int size, int rate) {
  const int shortest = rate / 400, longest = rate / 60, length = size - longest;
  std::vector<double> match(static_cast<size_t>(longest) + 2);
  double energy = 1e-9;
  for (int i = 0; i < length; ++i) energy += window[i] * window[i];
  if (energy / length < 1e-4) return 0;
  for (int lag = shortest - 1; lag <= longest; ++lag) {
    double product = 0, shifted = 1e-9;
    for (int i = 0; i < length; ++i) {
      product += window[i] * window[i + lag];
      shifted += window[i + lag] * window[i + lag];
    }
    match[static_cast<size_t>(lag)] = product / std::sqrt(energy * shifted);
  }
  const double best = *std::max_element(match.begin() + shortest, match.end());
  if (best < 0.6) return 0;
  for (auto lag = static_cast<size_t>(shortest); lag + 1 < match.size(); ++lag)
    if (match[lag] > 0.9 * best && match[lag] >= match[lag - 1] && match[lag] >= match[lag + 1])
      return static_cast<double>(rate) / static_cast<double>(lag);
  return 0;
}

double median_pitch(const std::vector<float>& sound, int rate) {
  const int size = rate * 64 / 1000;
  std::vector<double> pitches;
  for (int at = 0; at + size < static_cast<int>(sound.size()); at += size / 2)
    if (const double pitch = pitch_of(sound.data() + at, size, rate); pitch > 0) pitches.push_back(pitch);
  if (pitches.empty()) return 0;
  const auto middle = pitches.begin() + static_cast<std::ptrdiff_t>(pitches.size() / 2);
  std::nth_element(pitches.begin(), middle, pitches.end());
  return *middle;
}

TEST(NamedVoices, EachFollowsItsClipAndSoundsDifferent) {
  EngineConfig config;
  config.model = std::string(SHOAL_SOURCE_DIR) + "/voice";
  config.device = ops::test_device_name();
  config.references_dir = "/nonexistent";
  config.cache_dir = "none";
  config.warm_up = false;
  Engine engine(config);
  engine.start();
  std::map<std::string, Speech> speeches;  // by voice, all at once
  const std::vector<VoiceInfo> voices = engine.voices().list();
  ASSERT_GE(voices.size(), 6u);
  for (size_t i = 0; i <= voices.size(); ++i) {
    SpeechRequest request;
    request.text = "The window was open all night.";
    request.voice = i < voices.size() ? voices[i].name : "";  // the model's own
    request.top_p = 0;
    speeches.emplace(request.voice, engine.submit(request));
  }
  std::map<std::vector<int32_t>, std::string> spoken;  // by codes: no two voices say the same
  std::map<std::string, double> pitches;
  for (auto& [voice, speech] : speeches) {
    pitches[voice] = median_pitch(speech.read_all(), engine.sample_rate_hz());
    EXPECT_EQ(speech.summary().cut_at_frames, 0) << voice;
    const auto [at, is_new] = spoken.emplace(speech.codes(), voice);
    EXPECT_TRUE(is_new) << voice << " speaks as " << at->second;
  }
  int64_t women = 0;
  for (const VoiceInfo& voice : voices) {
    SCOPED_TRACE(voice.name);
    EXPECT_TRUE(voice.fixed);
    const audio::Clip clip = audio::read_clip(kVoices + "/" + voice.name + "/clip.opus");
    EXPECT_GT(clip.seconds(), 3);
    EXPECT_LT(clip.seconds(), 5);
    const double wanted = median_pitch(clip.samples, clip.sample_rate_hz);
    EXPECT_NEAR(pitches[voice.name] / wanted, 1, 0.1) << wanted << " Hz";
    women += wanted > 140;
  }
  EXPECT_GE(women, 3);
  EXPECT_GE(static_cast<int64_t>(voices.size()) - women, 3);
}

}  // namespace
}  // namespace shoal
