// The built-in voice, end to end, against what the reference implementation computed (voice/goldens).
#include "runtime/built_in_voice.h"

#include <gtest/gtest.h>
#include <limits>

#include "audio/encoder.h"
#include "runtime/synthesizer.h"
#include "runtime/utterances.h"
#include "weights/checkpoint.h"

namespace shoal::runtime {
namespace {

const std::string kVoice = std::string(SHOAL_SOURCE_DIR) + "/voice";

struct Golden {
  std::string text, reference_text;
  std::vector<int32_t> prompt, codes, reference_codes;
  std::vector<int16_t> wave, reference_wave;
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

class BuiltInVoice : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    team_ = std::make_unique<ThreadTeam>(2);
    workspace_ = std::make_unique<Workspace>();
    context_ = std::make_unique<ops::Context>(
        ops::Context{.device = {}, .team = team_.get(), .workspace = workspace_.get(), .stream = nullptr});
    model_ =
        SpeechModel::load({.dir = kVoice, .precision = Precision::float32, .with_encoder = true}, *context_);
  }
  static void TearDownTestSuite() { model_.reset(); }

  static SpeechRequest greedy(const Golden& golden) {
    SpeechRequest request;
    request.text = golden.text;
    request.sampling.top_p = 0;  // greedy
    request.sampling.repetition_penalty = 1;
    request.chunk_length = 0;
    return request;
  }

  static std::vector<float> speak(Synthesizer& synthesizer, const SpeechRequest& request) {
    std::vector<float> sound;
    synthesizer.speak(request,
                      [&](std::span<const float> pcm) { sound.insert(sound.end(), pcm.begin(), pcm.end()); });
    return sound;
  }

  static void expect_golden_sound(const std::vector<float>& sound, const Golden& golden) {
    ASSERT_EQ(sound.size(), golden.wave.size());
    for (size_t i = 0; i < golden.wave_start.size(); ++i)
      ASSERT_NEAR(sound[i], golden.wave_start[i], 3e-5) << "sample " << i;
    // The golden was rounded to 16 bits: half a step, and the wave tolerance.
    for (size_t i = 0; i < sound.size(); ++i)
      ASSERT_NEAR(sound[i], golden.wave[i] / 32767.0, 0.5 / 32767 + 3e-5) << "sample " << i;
  }

  static std::unique_ptr<ThreadTeam> team_;
  static std::unique_ptr<Workspace> workspace_;
  static std::unique_ptr<ops::Context> context_;
  static std::unique_ptr<const SpeechModel> model_;
};
std::unique_ptr<ThreadTeam> BuiltInVoice::team_;
std::unique_ptr<Workspace> BuiltInVoice::workspace_;
std::unique_ptr<ops::Context> BuiltInVoice::context_;
std::unique_ptr<const SpeechModel> BuiltInVoice::model_;

TEST_F(BuiltInVoice, GreedyCodesAndSoundEqualTheGoldens) {
  for (const std::string name : {"hello", "numbers"}) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(name);
    Synthesizer synthesizer(*model_, *team_);
    const SpeechRequest request = greedy(golden);
    EXPECT_EQ(build_prompt(request, *model_, {}, golden.text).values, golden.prompt);
    const std::vector<float> sound = speak(synthesizer, request);
    ASSERT_EQ(synthesizer.utterances().size(), 1u);
    EXPECT_EQ(synthesizer.utterances()[0].codes, golden.codes);
    expect_golden_sound(sound, golden);
  }
}

TEST_F(BuiltInVoice, AReferenceIsEncodedAndFollowedAsInTheGolden) {
  const Golden golden = read_golden("cloned");
  audio::Clip clip{.sample_rate_hz = 16000, .samples = {}};
  for (int16_t sample : golden.reference_wave) clip.samples.push_back(sample / 32768.0f);
  SpeechRequest request = greedy(golden);
  request.references.push_back(encode_reference(*model_, clip, golden.reference_text, "clip", *context_));
  EXPECT_EQ(request.references[0].codes, golden.reference_codes);
  EXPECT_EQ(build_prompt(request, *model_, {}, golden.text).values, golden.prompt);
  Synthesizer synthesizer(*model_, *team_);
  const std::vector<float> sound = speak(synthesizer, request);
  EXPECT_EQ(synthesizer.utterances()[0].codes, golden.codes);
  expect_golden_sound(sound, golden);
}

TEST_F(BuiltInVoice, TheSeedDecidesTheSoundAndNothingElseDoes) {
  SpeechRequest request;
  request.text = "The same words, drawn again.";
  Synthesizer first(*model_, *team_);
  const std::vector<float> once = speak(first, request);
  EXPECT_EQ(speak(first, request), once);
  ThreadTeam one(1);
  Synthesizer alone(*model_, one);
  EXPECT_EQ(speak(alone, request), once);
  request.sampling.seed = 43;
  EXPECT_NE(speak(first, request), once);
}

TEST_F(BuiltInVoice, StreamedPiecesEqualDecodingAllCodesAtOnce) {
  SpeechRequest request;
  request.text = "Streaming must not change a single sample of what is said.";
  Synthesizer synthesizer(*model_, *team_);
  const std::vector<float> streamed = speak(synthesizer, request);
  EXPECT_EQ(model_->codec().decode(*context_, synthesizer.utterances()[0].codes), streamed);
}

TEST_F(BuiltInVoice, ALongTextIsSplitAndKeepsItsVoice) {
  SpeechRequest request;
  request.text =
      "The first sentence is here. The second one follows it at once. A third closes the short story.";
  request.chunk_length = 50;
  Synthesizer synthesizer(*model_, *team_);
  speak(synthesizer, request);
  const std::vector<VoiceReference>& spoken = synthesizer.utterances();
  ASSERT_GE(spoken.size(), 2u);
  // The second prompt carries the first utterance's text and codes.
  const text::PromptColumns prompt =
      build_prompt(request, *model_, std::span(spoken).first(1), spoken[1].text);
  EXPECT_GT(prompt.columns(), spoken[0].frames + static_cast<int64_t>(spoken[0].text.size()));
  for (const VoiceReference& utterance : spoken) EXPECT_GT(utterance.frames, 5);
}

TEST_F(BuiltInVoice, SteadyStateOfTheCodecAndTheModelAllocatesNoWorkspace) {
  SpeechRequest request;
  request.text = "Once is enough to learn how much memory a step needs.";
  Synthesizer synthesizer(*model_, *team_);
  speak(synthesizer, request);
  speak(synthesizer, request);
  const int64_t settled = synthesizer.context().workspace->growths();
  speak(synthesizer, request);
  EXPECT_EQ(synthesizer.context().workspace->growths(), settled);
}

TEST_F(BuiltInVoice, CancellingIsATypedErrorAndTheNextRequestIsUntouched) {
  SpeechRequest request;
  request.text = "This one will be interrupted before it ends.";
  Synthesizer synthesizer(*model_, *team_);
  const std::vector<float> whole = speak(synthesizer, request);
  int frames = 0;
  try {
    synthesizer.speak(
        request, [](std::span<const float>) {}, [&](const SpeechProgress&) { return ++frames < 7; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_EQ(speak(synthesizer, request), whole);
}

TEST_F(BuiltInVoice, APromptThatLeavesNoRoomForSpeechIsRefusedWithNumbers) {
  Synthesizer synthesizer(*model_, *team_);
  SpeechRequest request;
  request.text = std::string(3000, 'a');
  request.chunk_length = 0;
  try {
    speak(synthesizer, request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::too_large);
    EXPECT_NE(error.message().find("at most 2048"), std::string::npos) << error.message();
  }
}

TEST_F(BuiltInVoice, ItsOwnDefaultsReachTheRequest) {
  const SpeechRequest request = default_request(*model_);
  EXPECT_EQ(request.sampling.temperature, 0.7f);
  EXPECT_EQ(request.sampling.top_p, 0.7f);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.1f);
  EXPECT_TRUE(request.normalise);
}

TEST_F(BuiltInVoice, BadRequestsAreRefusedByField) {
  Synthesizer synthesizer(*model_, *team_);
  const auto message_of = [&](const SpeechRequest& request) -> std::string {
    try {
      synthesizer.speak(request, [](std::span<const float>) { ADD_FAILURE() << "sound came out"; });
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
  EXPECT_TRUE(with([](auto& r) { r.text = " ...?! "; }).starts_with("text:"));
  EXPECT_TRUE(with([](auto& r) { r.text = std::string(1 << 20, 'a'); }).starts_with("text:"));
  EXPECT_TRUE(with([](auto& r) { r.text = "a\xff"; }).starts_with("text:"));
  EXPECT_TRUE(with([](auto& r) { r.chunk_length = 7; }).starts_with("chunk_length:"));
  EXPECT_TRUE(with([](auto& r) { r.max_new_tokens = -1; }).starts_with("max_new_tokens:"));
  EXPECT_TRUE(with([](auto& r) { r.sampling.temperature = 3; }).starts_with("temperature"));
  EXPECT_TRUE(
      with([](auto& r) { r.sampling.top_p = std::numeric_limits<float>::quiet_NaN(); }).starts_with("top_p"));
  EXPECT_TRUE(with([](auto& r) { r.sampling.repetition_penalty = 0; }).starts_with("repetition_penalty"));
}

}  // namespace
}  // namespace shoal::runtime
