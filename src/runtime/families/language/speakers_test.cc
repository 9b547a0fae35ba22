// Dialogues of S2: every turn in the voice of its speaker, as the official code has it; and bad ones.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/families/language/speech_model.h"
#include "shoal/model.h"
#include "shoal/seeds.h"
#include "tests/parity/lm_driver.h"
#include "text/prompt.h"
#include "text/s2_folder_testing.h"

namespace shoal::runtime {
namespace {

using testing::Answer;
using testing::answer_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::random_voice;
using text::S2Folder;

constexpr int kFrames = 10;
// Each is longer than half of the shortest chunk_length: a group of its own.
const std::vector<std::string> kTurns = {"<|speaker:0|>Where does the small fish sleep at night?",
                                         "<|speaker:2|>[whispers] Under the cold moon, I think.",
                                         "<|speaker:1|>Nobody has ever seen it, not once.",
                                         "<|speaker:0|>Then we shall wait until it wakes."};

std::string dialogue() {
  std::string text;
  for (const std::string& turn : kTurns) text += turn + " ";
  return text;
}

const S2Folder& s2_folder() {
  static const S2Folder made;
  return made;
}

EngineConfig s2_config() {
  EngineConfig config = testing::tiny_config();
  config.model = s2_folder().path();
  return config;
}

// Three clips in codes, of speakers 2, 0, 1.
std::vector<ReferenceCodes> three_voices() {
  std::mt19937_64 random(5);
  std::vector<ReferenceCodes> voices;
  for (const int speaker : {2, 0, 1}) {
    voices.push_back(random_voice(random, 8 + speaker));
    voices.back().speaker = speaker;
  }
  return voices;
}

SpeechRequest dialogue_of(const std::string& text, uint64_t seed = 11) {
  SpeechRequest request;
  request.text = text;
  request.seed = seed;
  request.max_new_tokens = kFrames;
  request.chunk_length = 50;
  request.quirks.keep_last_frame_without_end = true;
  return request;
}

SpeechRequest three_speakers(uint64_t seed = 11) {
  SpeechRequest request = dialogue_of(dialogue(), seed);
  request.encoded_references = three_voices();
  return request;
}

Answer said_by(Engine& engine, const SpeechRequest& request) {
  Speech speech = engine.submit(request);
  return answer_of(speech);
}

// The turns by the model alone, one after another: no engine, no cache, nothing shared.
std::vector<int32_t> turn_by_turn(const SpeechRequest& request) {
  parity::LmMachine machine;
  const auto model =
      SpeechModel::load({.dir = s2_folder().path(), .precision = Precision::float32}, machine.context);
  const dual_ar::Config& config = model->language_model().config();
  const int books = static_cast<int>(config.num_codebooks);
  std::vector<text::ReferenceCodes> references, history;
  for (const ReferenceCodes& voice : request.encoded_references)
    references.push_back({voice.text, voice.codes.data(), std::ssize(voice.codes) / books, voice.speaker});
  std::vector<std::vector<int32_t>> spoken(kTurns.size());
  std::vector<int32_t> all;
  for (size_t turn = 0; turn < kTurns.size(); ++turn) {
    const text::PromptColumns prompt = text::build_s2_prompt(model->tokenizer(), books, references, history,
                                                             kTurns[turn], text::SpecialTokens::recognise);
    dual_ar::Sampling sampling = dual_ar::Sampling::defaults(config.family);
    sampling.seed = seed_of_utterance(*request.seed, turn);
    parity::LmDriver driver(model->language_model(), machine.context,
                            {.columns_per_sequence = prompt.columns() + kFrames});
    std::vector<int32_t> frames = driver.generate(0, prompt.values, sampling, kFrames);
    const auto width = static_cast<size_t>(config.columns());
    if (frames[frames.size() - width] == config.im_end) frames.resize(frames.size() - width);
    for (size_t i = 0; i < frames.size(); i += width)
      spoken[turn].insert(spoken[turn].end(), frames.begin() + static_cast<int64_t>(i) + 1,
                          frames.begin() + static_cast<int64_t>(i + width));
    history.push_back({kTurns[turn], spoken[turn].data(), std::ssize(spoken[turn]) / books});
    all.insert(all.end(), spoken[turn].begin(), spoken[turn].end());
  }
  return all;
}

TEST(Speakers, EachTurnHasTheCodesOfThatTurnRenderedByItself) {
  Engine engine(s2_config());
  engine.start();
  const SpeechRequest request = three_speakers();
  Speech speech = engine.submit(request);
  const Answer answer = answer_of(speech);
  EXPECT_EQ(answer.codes, turn_by_turn(request));
  EXPECT_EQ(speech.summary().utterances, std::ssize(kTurns));
  EXPECT_THAT(speech.summary().warnings, IsEmpty());
  // Another voice for one speaker is heard.
  SpeechRequest swapped = request;
  std::swap(swapped.encoded_references[0].speaker, swapped.encoded_references[1].speaker);
  EXPECT_NE(said_by(engine, swapped).codes, answer.codes);
}

TEST(Speakers, ADialogueIsTheSameAloneAndInABatch) {
  std::vector<SpeechRequest> requests;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    requests.push_back(three_speakers(seed));
    if (seed % 2 == 0) requests.back().encoded_references.clear();
  }
  std::vector<std::vector<Answer>> answers;
  for (const int batch : {1, 4}) {
    EngineConfig config = s2_config();
    config.max_batch_size = batch;
    config.prefix_cache = batch > 1;
    Engine engine(config);
    engine.start();
    std::vector<Speech> speeches;
    for (const SpeechRequest& request : requests) speeches.push_back(engine.submit(request));
    answers.emplace_back();
    for (Speech& speech : speeches) answers.back().push_back(answer_of(speech));
  }
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(Speakers, NamedVoicesAreTheirClipsInTheOrderOfTheNumbers) {
  const TemporaryFolder voices;
  EngineConfig config = s2_config();
  config.references_dir = voices.path();
  Engine engine(config);
  engine.start();
  const std::string low = testing::noise_wav(0.4, 1), high = testing::noise_wav(0.5, 2);
  engine.voices().add("clara", low, "low words");
  engine.voices().add("hugo", high, "high words");
  SpeechRequest named =
      dialogue_of("<|speaker:0|>Hello there, my friend. <|speaker:1|>Good day to you, too.");
  SpeechRequest clips = named;
  named.voices = {{1, "hugo"}, {0, "clara"}};
  clips.references = {{.audio = low, .text = "low words"}, {.audio = high, .text = "high words"}};
  const Answer wanted = said_by(engine, named);
  EXPECT_EQ(said_by(engine, clips), wanted);  // as in the official API: clip i is speaker i's
  named.voices = {{0, "hugo"}, {1, "clara"}};
  EXPECT_NE(said_by(engine, named).codes, wanted.codes);
  named.voices = {{0, "clara"}, {1, ""}};  // the model's own choice
  EXPECT_NE(said_by(engine, named).codes, wanted.codes);
  named.voices = {{0, "clara"}, {1, "nobody"}};
  EXPECT_EQ(error_of([&] { engine.submit(named); }).code(), ErrorCode::not_found);
}

TEST(Speakers, TurnsAreGroupedByFiveAndByBytes) {
  Engine engine(s2_config());
  engine.start();
  std::string text;
  for (int i = 0; i < 12; ++i) text += "<|speaker:" + std::to_string(i % 3) + "|>Turn.";
  const auto utterances = [&](int chunk_length) {
    SpeechRequest request = dialogue_of(text);
    request.max_new_tokens = 4;
    request.chunk_length = chunk_length;
    Speech speech = engine.submit(request);
    speech.read_all();
    return speech.summary().utterances;
  };
  EXPECT_EQ(utterances(1000), 3);
  EXPECT_EQ(utterances(50), 6);  // 18 bytes a turn
}

TEST(Speakers, ALongDialogueFitsIntoAFewPages) {
  EngineConfig config = s2_config();
  config.kv_memory_mb = 1;  // 682 columns: its 24 turns take more
  config.max_batch_size = 1;
  Engine engine(config);
  engine.start();
  std::string text;
  for (int i = 0; i < 24; ++i)
    text += "<|speaker:" + std::to_string(i % 2) + "|>This is one more turn of many, and not the last.";
  const Answer answer = said_by(engine, dialogue_of(text));
  EXPECT_GT(answer.codes.size(), 24u * 10);
}

TEST(Speakers, OddTextsAreSpokenAndReported) {
  Engine engine(s2_config());
  engine.start();
  const auto warnings_of = [&](SpeechRequest request) {
    request.max_new_tokens = 3;
    Speech speech = engine.submit(request);
    EXPECT_FALSE(speech.read_all().empty()) << request.text.substr(0, 60);
    return speech.summary().warnings;
  };
  EXPECT_THAT(warnings_of(dialogue_of("<|speaker:0")), IsEmpty());
  EXPECT_THAT(warnings_of(dialogue_of("[never closed, <|speaker:|> and <|speaker:1|")), IsEmpty());
  EXPECT_THAT(warnings_of(dialogue_of("<|speaker:0|>One.<|speaker:7|>Two.")),
              IsEmpty());  // no clips: its choice
  EXPECT_THAT(warnings_of(dialogue_of("Before. <|speaker:0|>After.")),
              ElementsAre(HasSubstr("text: what stands before the first <|speaker:...|> is not spoken")));
  SpeechRequest few = dialogue_of("<|speaker:0|>One.<|speaker:1|>Two.");
  few.encoded_references = {three_voices()[1]};
  few.encoded_references[0].speaker.reset();
  EXPECT_THAT(warnings_of(few),
              ElementsAre(HasSubstr("speaker 1 has no reference: the model chooses a voice")));
  few.strict = true;
  EXPECT_EQ(error_of([&] { engine.submit(few).read_all(); }).code(), ErrorCode::unsupported);
  std::string thousand;
  for (int i = 0; i < 1000; ++i) thousand += "<|speaker:" + std::to_string(i) + "|>Hi.";
  SpeechRequest many = dialogue_of(thousand);
  many.chunk_length = 1000;
  EXPECT_THAT(warnings_of(many), IsEmpty());
}

TEST(Speakers, BadVoicesAreRefusedByName) {
  const std::string s2 = s2_folder().path(), s1 = testing::tiny_config().model;
  const auto refused = [&](const std::string& model, ErrorCode code, const char* what, auto change) {
    SpeechRequest request = dialogue_of("<|speaker:0|>One.<|speaker:1|>Two.");
    request.voices = {{0, "clara"}, {1, "hugo"}};
    change(request);
    const Error error = error_of([&] { validate_request(request, model); });
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(what));
  };
  constexpr ErrorCode kWrong = ErrorCode::invalid_argument;
  using R = SpeechRequest;
  SpeechRequest good = dialogue_of("<|speaker:0|>One.");
  good.voices = {{0, "clara"}};
  EXPECT_THAT(validate_request(good, s2), IsEmpty());
  refused(s1, ErrorCode::unsupported, "voices: this model speaks a text in one voice", [](R&) {});
  refused(s1, ErrorCode::unsupported, "references: this model speaks a text in one voice",
          [](R& r) { r.voices.clear(), r.references = {{.audio = "x", .text = "y", .speaker = 0}}; });
  refused(s2, kWrong, "voices: expected one for each speaker of the text, got none for <|speaker:1|>",
          [](R& r) { r.voices.pop_back(); });
  refused(s2, kWrong, "references: expected one for each speaker",
          [](R& r) { r.voices.clear(), r.references = {{.audio = "x", .text = "y", .speaker = 0}}; });
  refused(s2, kWrong, "references: say of all clips which speaker", [](R& r) {
    r.voices.clear(), r.references = {{.audio = "x", .text = "y", .speaker = 0}, {.audio = "x", .text = "y"}};
  });
  refused(s2, kWrong, "voices: speaker 1 has more than one", [](R& r) { r.voices[0].speaker = 1; });
  refused(s2, kWrong, "voices: expected speakers 0 to 999", [](R& r) { r.voices[0].speaker = -1; });
  refused(s2, kWrong, "voices: give voices by speaker, or a voice", [](R& r) { r.voice = "clara"; });
  refused(s2, kWrong, "voices: at most 16", [](R& r) {
    r.voices.clear();
    for (int i = 0; i < 1000; ++i) r.voices.push_back({i, "clara"});
  });
}

TEST(Speakers, TheModelSaysThatItKnowsThem) {
  Engine engine(s2_config());
  engine.start();
  for (const ModelTraits& traits : {engine.traits(), traits_of(s2_config().model)}) {
    EXPECT_EQ(traits.family, "s2");
    EXPECT_TRUE(traits.speakers);
    EXPECT_EQ(traits.tags, "brackets");
  }
}

TEST(Speakers, VoicesAreReadFromAText) {
  const auto voices = parse_speaker_voices("0=clara,12=af_bella(2)+af_sky(1)");
  ASSERT_EQ(voices.size(), 2u);
  EXPECT_EQ(voices[0].speaker, 0);
  EXPECT_EQ(voices[0].voice, "clara");
  EXPECT_EQ(voices[1].speaker, 12);
  EXPECT_EQ(voices[1].voice, "af_bella(2)+af_sky(1)");
  EXPECT_THAT(parse_speaker_voices(""), IsEmpty());
  EXPECT_EQ(parse_speaker_voice("3=").voice, "");
  for (const char* bad :
       {"clara", "=clara", "x=clara", "-1=clara", " 0=clara", "0 =clara", "99999999999=clara"})
    EXPECT_THAT(error_of([&] { parse_speaker_voice(bad); }).message(), HasSubstr("expected NUMBER=VOICE"));
}

}  // namespace
}  // namespace shoal::runtime
