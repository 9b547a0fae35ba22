// Reference voices through the engine: named ones, clips in requests, their caches, warming them.
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/eventually_testing.h"
#include "runtime/engine/engine_testing.h"

namespace shoal::runtime {
namespace {

using testing::Answer;
using testing::answer_of;

// A wav file with a chord in it, half a second long.
std::string chord(double hz) {
  constexpr int kRate = 22050, kSamples = kRate / 2;
  std::string wav;
  const auto number = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) wav.push_back(static_cast<char>(value >> (8 * i)));
  };
  wav += "RIFF", number(36 + kSamples * 2, 4), wav += "WAVEfmt ", number(16, 4), number(1, 2), number(1, 2);
  number(kRate, 4), number(kRate * 2, 4), number(2, 2), number(16, 2), wav += "data", number(kSamples * 2, 4);
  for (int i = 0; i < kSamples; ++i) {
    const double t = static_cast<double>(i) / kRate;
    const double value = std::sin(6.2832 * hz * t) + 0.5 * std::sin(6.2832 * hz * 2.5 * t);
    number(static_cast<uint16_t>(static_cast<int16_t>(value * 12000)), 2);
  }
  return wav;
}

class VoicesByName : public ::testing::Test {
 protected:
  VoicesByName() {
    dir_ = std::filesystem::temp_directory_path() / ("shoal_voices_" + std::to_string(getpid()));
    std::filesystem::remove_all(dir_);
    config_ = testing::tiny_config();
    config_.references_dir = (dir_ / "references").string();
    config_.cache_dir = (dir_ / "cache").string();
  }
  ~VoicesByName() override { std::filesystem::remove_all(dir_); }

  static SpeechRequest with_voice(const std::string& voice) {
    SpeechRequest request;
    request.text = "What the voice says.";
    request.voice = voice;
    request.seed = 9;
    request.max_new_tokens = 8;
    return request;
  }

  static Answer speak(Engine& engine, const SpeechRequest& request) {
    Speech speech = engine.submit(request);
    return answer_of(speech);
  }

  std::filesystem::path dir_;
  EngineConfig config_;
};

TEST_F(VoicesByName, AreAddedRenamedAndRemovedWhileTheEngineRuns) {
  Engine engine(config_);
  engine.start();
  engine.voices().add("ann", chord(220), "high notes");
  engine.voices().add("bob", chord(110), "high notes");
  const Answer ann = speak(engine, with_voice("ann")), bob = speak(engine, with_voice("bob"));
  EXPECT_NE(ann.codes, bob.codes);
  engine.voices().rename("ann", "anna");
  EXPECT_EQ(speak(engine, with_voice("anna")), ann);
  EXPECT_THROW(engine.submit(with_voice("ann")), Error);
  engine.voices().remove("bob");
  EXPECT_THROW(engine.submit(with_voice("bob")), Error);
  // The name is free again: a request gets the new voice, not the remembered one.
  engine.voices().add("bob", chord(220), "high notes");
  EXPECT_EQ(speak(engine, with_voice("bob")), ann);
}

TEST_F(VoicesByName, AClipInTheRequestIsTheSameVoiceAsANamedOne) {
  Engine engine(config_);
  engine.start();
  engine.voices().add("ann", chord(220), "high notes");
  const Answer named = speak(engine, with_voice("ann"));
  SpeechRequest inline_clip = with_voice("");
  inline_clip.references = {{.audio = chord(220), .text = "high notes"}};
  EXPECT_EQ(speak(engine, inline_clip), named);
  SpeechRequest encoded = with_voice("");
  encoded.encoded_references = {{.codes = engine.encode(chord(220)).codes, .text = "high notes"}};
  EXPECT_EQ(speak(engine, encoded), named);
  EXPECT_EQ(engine.statistics().voices.encoded, 1);
  inline_clip.references[0].text = "other words";
  EXPECT_NE(speak(engine, inline_clip), named);
  EXPECT_EQ(engine.statistics().voices.encoded, 1);  // the same clip: no further encoding
}

TEST_F(VoicesByName, AreEncodedOnceForAllRuns) {
  Answer first;
  {
    Engine engine(config_);
    engine.start();
    engine.voices().add("ann", chord(220), "high notes");
    first = speak(engine, with_voice("ann"));
    EXPECT_EQ(engine.statistics().voices.encoded, 1);
  }
  Engine engine(config_);
  engine.start();
  EXPECT_EQ(speak(engine, with_voice("ann")), first);
  EXPECT_EQ(engine.statistics().voices.encoded, 0);
  EXPECT_EQ(engine.statistics().voices.disk_hits, 1);
}

TEST_F(VoicesByName, ManyNewClipsAtOnceAreEachEncodedOnce) {
  Engine engine(config_);
  engine.start();
  std::vector<Speech> speeches;
  for (int i = 0; i < 12; ++i) {
    SpeechRequest request = with_voice("");
    request.references = {{.audio = chord(200 + 20 * (i % 3)), .text = "a chord"}};
    speeches.push_back(engine.submit(request));
  }
  std::vector<Answer> answers;
  for (Speech& speech : speeches) answers.push_back(answer_of(speech));
  for (size_t i = 3; i < answers.size(); ++i) EXPECT_EQ(answers[i], answers[i % 3]);
  EXPECT_NE(answers[0].codes, answers[1].codes);
  EXPECT_EQ(engine.statistics().voices.encoded, 3);
}

// Taken together by the encoder, which a long clip keeps busy until they are all there.
TEST_F(VoicesByName, ABadClipAmongGoodOnesFailsAlone) {
  const auto with_clip = [](std::string audio) {
    SpeechRequest request = with_voice("");
    request.references = {{.audio = std::move(audio), .text = "a chord"}};
    return request;
  };
  std::vector<Answer> alone;
  {
    EngineConfig apart = config_;
    apart.cache_dir = (dir_ / "apart").string();
    Engine engine(apart);
    engine.start();
    for (const double hz : {200, 300}) alone.push_back(speak(engine, with_clip(chord(hz))));
  }
  EXPECT_NE(alone[0].codes, alone[1].codes);
  Engine engine(config_);
  engine.start();
  Speech busy = engine.submit(with_clip(testing::noise_wav(20, 1)));
  Speech first = engine.submit(with_clip(chord(200)));
  Speech bad = engine.submit(with_clip(chord(250).substr(0, 20)));
  Speech last = engine.submit(with_clip(chord(300)));
  EXPECT_EQ(answer_of(first), alone[0]);
  EXPECT_EQ(testing::code_of([&] { bad.read_all(); }), ErrorCode::corrupt_file);
  EXPECT_EQ(answer_of(last), alone[1]);
  busy.read_all();
  EXPECT_EQ(engine.statistics().voices.encoded, 3);
}

TEST_F(VoicesByName, AreWarmedInTheBackground) {
  {
    Engine engine(config_);
    engine.start();
    engine.voices().add("ann", chord(220), "high notes");
    engine.voices().add("bob", chord(110), "low notes");
  }
  config_.warm_voices = "ann,nobody";
  Engine engine(config_);
  engine.start();
  ASSERT_TRUE(eventually([&] { return engine.statistics().completed >= 1; }));
  const auto cached_of = [&](const std::string& voice) {
    Speech speech = engine.submit(with_voice(voice));
    speech.read_all();
    const SpeechSummary summary = speech.summary();
    return std::pair{summary.cached_columns, summary.prompt_columns};
  };
  const auto [warm, all] = cached_of("ann");
  EXPECT_GT(warm, all / 2);
  EXPECT_LT(cached_of("bob").first, all / 2);
}

TEST_F(VoicesByName, WithoutTheEncoderAVoiceIsRefusedByName) {
  {
    Engine engine(config_);
    engine.start();
    engine.voices().add("ann", chord(220), "high notes");
  }
  config_.with_encoder = false;
  Engine engine(config_);
  engine.start();
  Speech speech = engine.submit(with_voice("ann"));
  try {
    speech.read_all();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(error.message().find("encoder"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace shoal::runtime
