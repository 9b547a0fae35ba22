// The built-in voice, end to end, against the reference implementation (voice/goldens).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "base/error_testing.h"
#include "ops/device_testing.h"
#include "runtime/families/language/speech_plan.h"
#include "shoal/engine.h"
#include "shoal/model.h"
#include "weights/checkpoint.h"

namespace shoal::runtime {
namespace {

const std::string kVoice = std::string(SHOAL_SOURCE_DIR) + "/voice";

struct Golden {
  std::string text, reference_text;
  std::vector<int32_t> prompt, codes, reference_codes;
  std::vector<int16_t> wave, reference_wave;  // wave: not of every golden
  std::vector<float> wave_start;
};

template <typename T>
std::vector<T> values_of(const weights::Checkpoint& file, std::string_view name) {
  const TensorView* view = file.find(name);
  if (!view) return {};
  std::vector<T> values(static_cast<size_t>(view->elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (view->dtype()) {
      case DType::i16:
        values[i] = static_cast<T>(view->as<int16_t>()[i]);
        break;
      case DType::u8:
        values[i] = static_cast<T>(view->as<uint8_t>()[i]);
        break;
      default:
        values[i] = static_cast<T>(view->as<float>()[i]);
    }
  }
  return values;
}

std::string string_of(const weights::Checkpoint& file, std::string_view name) {
  const std::vector<char> bytes = values_of<char>(file, name);
  return {bytes.begin(), bytes.end()};
}

Golden read_golden(const std::string& name) {
  const auto file = weights::Checkpoint::open(kVoice + "/goldens/" + name + ".safetensors");
  return {.text = string_of(file, "text"),
          .reference_text = string_of(file, "ref_text"),
          .prompt = values_of<int32_t>(file, "prompt"),
          .codes = values_of<int32_t>(file, "codes"),
          .reference_codes = values_of<int32_t>(file, "ref_codes"),
          .wave = values_of<int16_t>(file, "wave_i16"),
          .reference_wave = values_of<int16_t>(file, "ref_wave_i16"),
          .wave_start = values_of<float>(file, "wave_f32_start")};
}

// One spoken request: its samples, and the codes that they were made of.
struct Spoken {
  std::vector<float> sound;
  std::vector<int32_t> codes;
};

EngineConfig config_with(int threads) {
  EngineConfig config;
  config.model = kVoice;
  config.device = ops::test_device_name();
  config.precision = Precision::float32;
  config.threads = threads;
  config.max_batch_size = 2;
  config.cache_dir = "none";
  config.warm_up = false;
  return config;
}

std::string wav_of(const std::vector<int16_t>& samples, uint32_t rate) {
  std::string wav;
  const auto number = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) wav.push_back(static_cast<char>(value >> (8 * i)));
  };
  const auto data_bytes = static_cast<uint32_t>(samples.size() * 2);
  wav += "RIFF", number(36 + data_bytes, 4), wav += "WAVEfmt ", number(16, 4), number(1, 2), number(1, 2);
  number(rate, 4), number(rate * 2, 4), number(2, 2), number(16, 2), wav += "data", number(data_bytes, 4);
  for (const int16_t sample : samples) number(static_cast<uint16_t>(sample), 2);
  return wav;
}

class BuiltInVoice : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    team_ = std::make_unique<ThreadTeam>(2);
    workspace_ = std::make_unique<Workspace>();
    context_ = std::make_unique<ops::Context>(
        ops::Context{.device = {}, .team = team_.get(), .workspace = workspace_.get(), .stream = nullptr});
    model_ = SpeechModel::load({.dir = kVoice, .precision = Precision::float32}, *context_);
    engine_ = std::make_unique<Engine>(config_with(2));
    engine_->start();
  }
  static void TearDownTestSuite() {
    engine_.reset();
    model_.reset();
  }

  static SpeechRequest greedy(const Golden& golden) {
    SpeechRequest request;
    request.text = golden.text;
    request.top_p = 0.0f;
    request.repetition_penalty = 1.0f;
    request.normalise = false;
    request.chunk_length = 0;
    return request;
  }

  static SpeechRequest seeded(const std::string& text) {
    SpeechRequest request;
    request.text = text;
    request.seed = 42;
    return request;
  }

  static Spoken speak(const SpeechRequest& request, Engine& engine = *engine_) {
    Speech speech = engine.submit(request);
    Spoken spoken{.sound = speech.read_all(), .codes = speech.codes()};
    return spoken;
  }

  static std::vector<int32_t> prompt_of(const SpeechRequest& request,
                                        std::vector<VoiceReference> references = {}) {
    const SpeechPlan plan = plan_speech(request, *model_, std::move(references), 0);
    return build_prompt(plan, *model_, {}, plan.utterances.at(0)).values;
  }

  static void expect_golden_sound(const std::vector<float>& sound, const Golden& golden) {
    const CodecShape codec = engine_->codec_shape();
    const size_t frames = golden.codes.size() / static_cast<size_t>(codec.codebooks);
    ASSERT_EQ(sound.size(), frames * static_cast<size_t>(codec.samples_per_frame));
    ASSERT_LE(golden.wave.size(), sound.size());
    for (size_t i = 0; i < golden.wave_start.size(); ++i)
      ASSERT_NEAR(sound[i], golden.wave_start[i], 3e-5) << "sample " << i;
    // The golden was rounded to 16 bits: half a step, and the wave tolerance.
    for (size_t i = 0; i < golden.wave.size(); ++i)
      ASSERT_NEAR(sound[i], golden.wave[i] / 32767.0, 0.5 / 32767 + 3e-5) << "sample " << i;
  }

  static std::unique_ptr<ThreadTeam> team_;
  static std::unique_ptr<Workspace> workspace_;
  static std::unique_ptr<ops::Context> context_;
  static std::unique_ptr<const SpeechModel> model_;
  static std::unique_ptr<Engine> engine_;
};
std::unique_ptr<ThreadTeam> BuiltInVoice::team_;
std::unique_ptr<Workspace> BuiltInVoice::workspace_;
std::unique_ptr<ops::Context> BuiltInVoice::context_;
std::unique_ptr<const SpeechModel> BuiltInVoice::model_;
std::unique_ptr<Engine> BuiltInVoice::engine_;

TEST_F(BuiltInVoice, GreedyCodesAndSoundEqualTheGoldens) {
  for (const std::string name : {"hello", "numbers"}) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(name);
    const SpeechRequest request = greedy(golden);
    EXPECT_EQ(prompt_of(request), golden.prompt);
    const Spoken spoken = speak(request);
    EXPECT_EQ(spoken.codes, golden.codes);
    expect_golden_sound(spoken.sound, golden);
  }
}

TEST_F(BuiltInVoice, AReferenceIsEncodedAndFollowedAsInTheGolden) {
  const Golden golden = read_golden("cloned");
  SpeechRequest request = greedy(golden);
  request.references.push_back(
      {.audio = wav_of(golden.reference_wave, 16000), .text = golden.reference_text});
  const EncodedClip encoded = engine_->encode(request.references[0].audio);
  EXPECT_EQ(encoded.codes, golden.reference_codes);
  EXPECT_EQ(
      prompt_of(request, {{.text = golden.reference_text, .codes = encoded.codes, .frames = encoded.frames}}),
      golden.prompt);
  const Spoken spoken = speak(request);
  EXPECT_EQ(spoken.codes, golden.codes);
  expect_golden_sound(spoken.sound, golden);
}

TEST_F(BuiltInVoice, TheSeedDecidesTheSoundAndNothingElseDoes) {
  SpeechRequest request = seeded("The same words, drawn again.");
  const Spoken once = speak(request);
  EXPECT_EQ(speak(request).sound, once.sound);
  Engine alone(config_with(1));
  alone.start();
  EXPECT_EQ(speak(request, alone).sound, once.sound);
  request.seed = 43;
  EXPECT_NE(speak(request).sound, once.sound);
}

TEST_F(BuiltInVoice, StreamedPiecesEqualDecodingAllCodesAtOnce) {
  const Spoken streamed = speak(seeded("Streaming must not change a single sample of what is said."));
  EXPECT_EQ(engine_->decode(streamed.codes), streamed.sound);
}

TEST_F(BuiltInVoice, ALongTextIsSplitAndKeepsItsVoice) {
  SpeechRequest request = seeded(
      "The first sentence is here. The second one follows it at once. A third closes the short story.");
  request.chunk_length = 50;
  Speech speech = engine_->submit(request);
  speech.read_all();
  const SpeechSummary summary = speech.summary();
  ASSERT_GE(summary.utterances, 2);
  EXPECT_GT(summary.frames, summary.utterances * 5);
  // Prompts after the first carry the first utterance's text and codes.
  SpeechRequest first = request;
  first.text = "The first sentence is here.";
  const Spoken alone = speak(first);
  const auto frames = static_cast<int64_t>(alone.codes.size()) / model_->codec().config().num_codebooks();
  EXPECT_GT(summary.prompt_columns, (summary.utterances - 1) * frames);
}

// How many frames a pass of the codec takes depends on how busy the machine is, so a larger one may still
// come late; but there is an end to that.
TEST_F(BuiltInVoice, PiecesTooLongForItAreSplitSoThatNoWordIsLost) {
  SpeechRequest request;
  for (int i = 0; i < 4; ++i) request.text += "The boats come home at night, and someone counts them all, ";
  request.text += "as promised.";
  request.seed = 1;
  request.chunk_length = 200;
  const std::vector<float> usual = speak(request).sound;
  for (const int chunk_length : {300, 0}) {
    request.chunk_length = chunk_length;
    Speech speech = engine_->submit(request);
    EXPECT_EQ(speech.read_all(), usual);
    EXPECT_THAT(speech.summary().warnings, testing::ElementsAre(testing::HasSubstr("chunk_length")));
  }
}

TEST_F(BuiltInVoice, TooFewFramesAreTheFaultOfTheirLimit) {
  SpeechRequest request;
  request.text = "Hello.";
  request.max_new_tokens = 1;
  const Error error = error_of([&] { speak(request); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.message(), testing::HasSubstr("max_new_tokens"));
}

TEST_F(BuiltInVoice, SteadyStateTakesNoMoreMemory) {
  const SpeechRequest request = seeded("Once is enough to learn how much memory a step needs.");
  const auto workspaces = [&] {
    for (const MemoryPart& part : engine_->health().memory)
      if (part.name == "workspaces") return part.bytes;
    return int64_t{-1};
  };
  constexpr int kEnough = 4, kMost = 24;
  int64_t settled = 0;
  int unchanged = 0, spoken = 0;
  for (; unchanged < kEnough && spoken < kMost; ++spoken) {
    speak(request);
    unchanged = workspaces() == settled ? unchanged + 1 : 0;
    settled = workspaces();
  }
  EXPECT_GT(settled, 0);
  EXPECT_EQ(unchanged, kEnough) << settled << " bytes after " << spoken << " times";
}

TEST_F(BuiltInVoice, CancellingIsATypedErrorAndTheNextRequestIsUnaffected) {
  const SpeechRequest request = seeded("This one will be interrupted before it ends.");
  const Spoken whole = speak(request);
  Speech speech = engine_->submit(request);
  speech.next();
  speech.cancel();
  try {
    speech.read_all();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_EQ(speak(request).sound, whole.sound);
}

TEST_F(BuiltInVoice, APromptThatLeavesNoRoomForSpeechIsRefusedWithNumbers) {
  SpeechRequest request = seeded("Hello.");
  request.references.push_back(
      {.audio = wav_of(read_golden("cloned").reference_wave, 16000), .text = std::string(3000, 'a')});
  const Error error = error_of([&] { speak(request); });
  EXPECT_EQ(error.code(), ErrorCode::too_large);
  EXPECT_THAT(error.message(), testing::HasSubstr("at most 2048"));
}

TEST_F(BuiltInVoice, DefaultsOfTheVoiceReachTheRequest) {
  const SpeechPlan plan = plan_speech(seeded("It costs $20."), *model_, {}, 0);
  EXPECT_EQ(plan.sampling.temperature, 0.7f);
  EXPECT_EQ(plan.sampling.top_p, 0.7f);
  EXPECT_EQ(plan.sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(plan.utterances.at(0), "It costs twenty dollars.");
}

TEST_F(BuiltInVoice, BadRequestsAreRefusedByField) {
  const auto message_of = [&](const SpeechRequest& request) -> std::string {
    try {
      engine_->submit(request);
      ADD_FAILURE() << "it was taken";
    } catch (const Error& error) {
      EXPECT_TRUE(is_callers_fault(error.code()));
      return error.message();
    }
    return "";
  };
  SpeechRequest good;
  good.text = "Fine.";
  const auto with = [&](auto change) {
    SpeechRequest bad = good;
    change(bad);
    return message_of(bad);
  };
  EXPECT_TRUE(with([](auto& r) { r.text = ""; }).starts_with("text:"));
  EXPECT_TRUE(with([](auto& r) { r.text = " \n "; }).starts_with("text:"));
  EXPECT_TRUE(with([](auto& r) { r.text = std::string(1 << 20, 'a'); }).starts_with("text:"));
  EXPECT_TRUE(with([](auto& r) { r.text = "a\xff"; }).starts_with("text:"));
  EXPECT_TRUE(with([](auto& r) { r.chunk_length = 7; }).starts_with("chunk_length:"));
  EXPECT_TRUE(with([](auto& r) { r.max_new_tokens = -1; }).starts_with("max_new_tokens:"));
  EXPECT_TRUE(with([](auto& r) { r.temperature = 3; }).starts_with("temperature"));
  EXPECT_TRUE(with([](auto& r) { r.top_p = std::numeric_limits<float>::quiet_NaN(); }).starts_with("top_p"));
  EXPECT_TRUE(with([](auto& r) { r.repetition_penalty = 0; }).starts_with("repetition_penalty"));
}

}  // namespace
}  // namespace shoal::runtime
