// A Kokoro model behind the public API of the engine.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread_team.h"
#include "ops/device_testing.h"
#include "runtime/families/kokoro/kokoro_model.h"
#include "runtime/families/kokoro/kokoro_testing.h"
#include "shoal/seeds.h"

namespace shoal::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::KokoroFolder;
using testing::phonemes_request;
using testing::text_request;

class KokoroEngine : public ::testing::Test {
 protected:
  Engine& engine(EngineConfig config) {
    engine_.emplace(std::move(config));
    engine_->start();
    return *engine_;
  }
  Engine& engine() { return engine(folder_.config()); }
  void expect_refused(const SpeechRequest& request, ErrorCode code, const std::string& part) {
    const Error error = error_of([&] { engine_->submit(request).read_all(); });
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(part));
  }

  const KokoroFolder folder_;
  std::optional<Engine> engine_;
};

TEST_F(KokoroEngine, AChunkEqualsTheModelsOutput) {
  Speech speech = engine().submit(phonemes_request("həlˈO ðˈɛɹ.", 77));
  const std::vector<float> heard = speech.read_all();

  ThreadTeam team(1);
  ops::Execution execution(ops::test_device(), team);
  const auto model = KokoroModel::load(folder_.config().model, Precision::float32, execution.context());
  std::vector<int32_t> ids = {0};
  for (const char32_t c : U"həlˈO ðˈɛɹ.")
    if (c != 0) ids.push_back(model->symbols().at(c));
  ids.push_back(0);
  const kokoro::VoicePack pack = kokoro::VoicePack::random(1);
  const kokoro::Utterance utterance{.ids = ids, .style = pack.row(std::ssize(ids) - 2), .seed = 77};
  const auto spoken = model->network().speak(execution.context(), {&utterance, 1});
  EXPECT_EQ(heard, spoken[0].samples);

  // Words follow the durations: three frames of the opening silence belong to the first one.
  const std::vector<int32_t>& durations = spoken[0].durations;
  const std::vector<SpokenWord> words = speech.words();
  ASSERT_FALSE(words.empty());
  EXPECT_NEAR(words.front().start_s, std::max(0, durations.front() - 3) * 0.025, 1e-9);
  EXPECT_NEAR(words.back().end_s + durations.back() * 0.025 + std::min(3, durations.front()) * 0.025,
              static_cast<double>(heard.size()) / 24000, 1e-9);

  const SpeechSummary summary = speech.summary();
  EXPECT_EQ(summary.seed, 77u);
  EXPECT_EQ(summary.sample_rate_hz, 24000);
  EXPECT_EQ(summary.samples, std::ssize(heard));
  EXPECT_EQ(summary.frames * 600, summary.samples);
  EXPECT_EQ(summary.utterances, 1);
  EXPECT_THAT(summary.warnings, IsEmpty());
  EXPECT_EQ(speech.progress().fraction, 1);
}

TEST_F(KokoroEngine, SoundsTheSameAloneAndBatchedStreamedAndWhole) {
  engine();
  std::mt19937_64 random(5);
  std::vector<SpeechRequest> requests;
  for (int i = 0; i < 7; ++i) requests.push_back(testing::random_kokoro_request(random));
  std::vector<std::vector<float>> alone;
  for (SpeechRequest request : requests) {
    request.delivery = Delivery::whole;
    alone.push_back(engine_->submit(request).read_all());
    EXPECT_FALSE(alone.back().empty());
  }
  std::vector<Speech> speeches;
  for (SpeechRequest& request : requests) {
    request.delivery = Delivery::streaming;
    speeches.push_back(engine_->submit(request));
  }
  for (size_t i = 0; i < speeches.size(); ++i) EXPECT_EQ(speeches[i].read_all(), alone[i]) << i;
  EXPECT_GT(engine_->statistics().batch_size.mean(), 1);
  const std::vector<BatchResult> batch = engine_->generate_batch(requests);
  for (size_t i = 0; i < batch.size(); ++i) EXPECT_EQ(batch[i].samples, alone[i]) << i;
}

TEST_F(KokoroEngine, CaptionsLineUpWithTheSound) {
  engine();
  Speech one = engine_->submit(text_request("Hello there, the moon is cold."));
  const double audio_s = static_cast<double>(one.read_all().size()) / 24000;
  const std::vector<SpokenWord> words = one.words();
  std::vector<std::string> spoken;
  double last = 0;
  for (const SpokenWord& word : words) {
    spoken.push_back(word.word);
    EXPECT_GE(word.start_s, last);
    EXPECT_GE(word.end_s, word.start_s);
    last = word.end_s;
  }
  EXPECT_THAT(spoken, ElementsAre("Hello", "there", ",", "the", "moon", "is", "cold", "."));
  EXPECT_LE(last, audio_s);
  EXPECT_EQ(one.words(6), std::vector<SpokenWord>(words.begin() + 6, words.end()));
  EXPECT_THAT(one.words(99), IsEmpty());

  // Of several chunks: as many words, and none beyond the sound.
  std::string text;
  for (int i = 0; i < 8; ++i) text += "Fish swim under the cold moon, and now the fish is cold. ";
  Speech many = engine_->submit(text_request(text));
  const double whole_s = static_cast<double>(many.read_all().size()) / 24000;
  EXPECT_EQ(many.summary().utterances, 3);
  last = 0;
  for (const SpokenWord& word : many.words()) {
    EXPECT_GE(word.start_s, last - 1e-9);
    EXPECT_GE(word.end_s, word.start_s);
    last = word.end_s;
  }
  EXPECT_LE(last, whole_s + 1e-9);
  EXPECT_GT(last, whole_s - 2.5) << "only the last chunk's end is silent";
  EXPECT_EQ(many.words().size(), 8u * 14);
}

TEST_F(KokoroEngine, SpeedPausesAndSeeds) {
  engine();
  const auto length = [&](const SpeechRequest& request) {
    return static_cast<double>(engine_->submit(request).read_all().size()) / 24000;
  };
  SpeechRequest request = phonemes_request("həlˈO wˈɜɹld, fˈɪʃ swˈɪm.");
  const double usual = length(request);
  request.speed = 0.25;
  EXPECT_GT(length(request), 2 * usual);
  request.speed = 1;
  request.phonemes += "[pause:1.5s]";
  EXPECT_NEAR(length(request), usual + 1.5, 1) << "what follows the last sound is cut for it";
  const SpeechRequest other = phonemes_request("həlˈO wˈɜɹld, fˈɪʃ swˈɪm.", 4);
  EXPECT_NE(engine_->submit(other).read_all(),
            engine_->submit(phonemes_request("həlˈO wˈɜɹld, fˈɪʃ swˈɪm.", 3)).read_all());
  Speech pause = engine_->submit(phonemes_request("[pause:0.5s]"));
  EXPECT_EQ(pause.read_all(), std::vector<float>(12000));
}

TEST_F(KokoroEngine, VoicesAndLanguages) {
  engine();
  EXPECT_TRUE(engine_->traits().phonemes && engine_->traits().own_voices);
  EXPECT_FALSE(engine_->traits().references);
  EXPECT_EQ(engine_->traits().family, "kokoro");
  std::vector<std::string> names, languages;
  for (const VoiceInfo& voice : engine_->voices().list()) {
    names.push_back(voice.name);
    languages.push_back(voice.language);
  }
  EXPECT_THAT(names, ElementsAre("af_one", "bm_two", "jf_three", "nobody"));
  EXPECT_THAT(languages, ElementsAre("en-us", "en-gb", "ja", ""));
  EXPECT_EQ(engine_->voices().get("af_one(2)+bm_two").language, "en-us");
  EXPECT_EQ(error_of([&] { engine_->voices().add("x", "", ""); }).code(), ErrorCode::unsupported);
  EXPECT_EQ(error_of([&] { engine_->voices().get("af_missing"); }).code(), ErrorCode::not_found);
  EXPECT_EQ(engine_->voice_styles("af_one"), kokoro::values_of(kokoro::VoicePack::random(1)));

  // Who names neither gets American English; a voice of another language is a warning.
  SpeechRequest request = text_request("Hello there.");
  const std::vector<float> wanted = engine_->submit(request).read_all();
  request.voice.clear();
  EXPECT_EQ(engine_->submit(request).read_all(), wanted);
  request.voice = "jf_three";
  request.language = "EN-US";
  Speech foreign = engine_->submit(request);
  EXPECT_NE(foreign.read_all(), wanted);
  EXPECT_THAT(foreign.summary().warnings, ElementsAre(AllOf(HasSubstr("jf_three"), HasSubstr("ja"))));

  request.language.clear();
  expect_refused(request, ErrorCode::unsupported, "send phonemes");
  request.voice = "nobody";
  expect_refused(request, ErrorCode::invalid_argument, "language");
  request = phonemes_request("həlˈO.");
  request.voice.clear();
  request.language = "ja";
  SpeechRequest named = request;
  named.voice = "jf_three";
  EXPECT_EQ(engine_->submit(request).read_all(), engine_->submit(named).read_all());
}

TEST_F(KokoroEngine, DefaultsOfTheConfiguration) {
  EngineConfig config = folder_.config();
  config.default_voice = "bm_two+af_one";
  config.default_language = "a";
  engine(config);
  SpeechRequest request = text_request("Hello there.");
  request.voice = "bm_two+af_one";
  const std::vector<float> wanted = engine_->submit(request).read_all();
  request.voice.clear();
  EXPECT_EQ(engine_->submit(request).read_all(), wanted);
  config.default_voice = "af_missing";
  EXPECT_EQ(error_of([&] { engine(config); }).code(), ErrorCode::not_found);
  config.default_voice.clear();
  config.default_language = "xx";
  EXPECT_EQ(error_of([&] { engine(config); }).code(), ErrorCode::invalid_argument);
  config.default_language = "hi";  // no voice speaks it; without the check the first request would fail
  EXPECT_EQ(error_of([&] { engine(config); }).code(), ErrorCode::not_found);
}

TEST_F(KokoroEngine, BadRequestsAreRefusedByName) {
  engine();
  const auto refused = [&](ErrorCode code, const std::string& part, auto change) {
    SpeechRequest request = phonemes_request("həlˈO.");
    change(request);
    expect_refused(request, code, part);
  };
  using R = SpeechRequest;
  constexpr auto kWrong = ErrorCode::invalid_argument;
  refused(kWrong, "not both", [](R& r) { r.text = "hello"; });
  for (const char* blank : {" \n", "\u00a0", "\u2028", "\u3000 \u0085"})
    refused(kWrong, "phonemes: expected at least one", [&](R& r) { r.phonemes = blank; });
  refused(kWrong, "phonemes: not valid UTF-8 (byte 1)", [](R& r) { r.phonemes = "a\xff"; });
  refused(ErrorCode::too_large, "phonemes: 300000 bytes",
          [](R& r) { r.phonemes = std::string(300'000, 'a'); });
  for (const double speed : {0.0, -1.0, 0.2, 4.1, std::nan(""), 1e300})
    refused(kWrong, "speed: expected 0.25 to 4", [speed](R& r) { r.speed = speed; });
  refused(ErrorCode::not_found, "af_missing", [](R& r) { r.voice = "af_missing"; });
  refused(ErrorCode::not_found, "../af_one", [](R& r) { r.voice = "../af_one"; });
  refused(kWrong, "voice", [](R& r) { r.voice = "af_one(0)"; });
  refused(kWrong, "language: expected a, b", [](R& r) { r.language = "x"; });
  refused(kWrong, "pause", [](R& r) { r.phonemes = "a [pause:long]"; });
  for (const char* blank : {"", " \n"})
    refused(kWrong, "text: expected something", [&](R& r) { r.phonemes.clear(), r.text = blank; });
  refused(ErrorCode::unsupported, "temperature", [](R& r) { r.strict = true, r.temperature = 0.5f; });
  refused(ErrorCode::unsupported, "special_tokens", [](R& r) { r.special_tokens = true; });
  refused(ErrorCode::unsupported, "references", [](R& r) { r.references = {{"", "words"}}; });
  refused(ErrorCode::unsupported, "voices: this model speaks a text in one voice",
          [](R& r) { r.voices = {{0, "af_one"}}; });
  refused(ErrorCode::unsupported, "max_new_tokens", [](R& r) { r.strict = true, r.max_new_tokens = 100; });
  refused(ErrorCode::unsupported, "chunk_length", [](R& r) { r.strict = true, r.chunk_length = 100; });
  refused(ErrorCode::unsupported, "quirks", [](R& r) { r.quirks.check_first_frame_end = true; });
  refused(ErrorCode::unavailable, "phonemizer: /nonexistent",
          [](R& r) { r.phonemes.clear(), r.text = "unheard"; });
  EXPECT_EQ(error_of([&] { engine_->encode("x"); }).code(), ErrorCode::unsupported);
  EXPECT_EQ(error_of([&] { engine_->codec_shape(); }).code(), ErrorCode::unsupported);
}

TEST_F(KokoroEngine, PhonemesThatTheModelLacksAreDroppedWithAWarningOrRefused) {
  engine();
  SpeechRequest request = phonemes_request("həlˈO ¿ʘ.");
  Speech speech = engine_->submit(request);
  EXPECT_FALSE(speech.read_all().empty());
  EXPECT_THAT(speech.summary().warnings, ElementsAre(AllOf(HasSubstr("U+00BF"), HasSubstr("U+0298"))));
  request.strict_phonemes = true;
  expect_refused(request, ErrorCode::invalid_argument, "U+0298");
  request.strict_phonemes = false;
  request.phonemes = "ʘʘʘ";
  expect_refused(request, ErrorCode::invalid_argument, "knows none of them");
}

TEST_F(KokoroEngine, AHundredThousandCharactersAreReadInChunks) {
  std::string phonemes;
  while (phonemes.size() < 100'000) phonemes += "fish swim ";
  EngineConfig config = folder_.config();
  config.prefetch_s = 1;
  engine(config);
  Speech speech = engine_->submit(phonemes_request(phonemes));
  EXPECT_FALSE(speech.next().empty()) << "heard long before the last chunk is spoken";
  EXPECT_LT(speech.progress().fraction, 0.5);
  speech.cancel();
  EXPECT_EQ(error_of([&] {
              while (!speech.next().empty()) {
              }
            }).code(),
            ErrorCode::cancelled);
}

TEST_F(KokoroEngine, PhonemizeReturnsTheSpokenPhonemes) {
  engine();
  const Phonemized read = engine_->phonemize("Hello there. [pause:1s] The moon [is](/ɪʘ/) cold.", "a");
  ASSERT_EQ(read.chunks.size(), 2u);
  EXPECT_EQ(read.chunks[0].phonemes, "həlˈO ðˈɛɹ.");
  EXPECT_EQ(read.chunks[0].ids.size(), 11u);
  EXPECT_EQ(read.chunks[0].pause_after_s, 1);
  EXPECT_EQ(read.chunks[1].phonemes, "ðə mˈun ɪʘ kˈOld.");
  EXPECT_THAT(read.warnings, ElementsAre(HasSubstr("U+0298")));
  EXPECT_EQ(error_of([&] { engine_->phonemize("", "a"); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { engine_->phonemize("hello", "z"); }).code(), ErrorCode::unsupported);
}

TEST_F(KokoroEngine, AnUnspeakableTextIsAShortSilence) {
  engine(folder_.config());
  for (const char* text : {"...", "🎉", "[hello](/./)"}) {
    SpeechRequest request;
    request.text = text;
    request.voice = "af_one";
    Speech speech = engine_->submit(request);
    const std::vector<float> silence = speech.read_all();
    EXPECT_EQ(silence, std::vector<float>(4800)) << text;
    ASSERT_EQ(speech.summary().warnings.size(), 1u) << text;
    EXPECT_THAT(speech.summary().warnings[0], HasSubstr("nothing in it that can be spoken"));
    request.voice = "af_missing";
    EXPECT_EQ(error_of([&] { engine_->submit(request).read_all(); }).code(), ErrorCode::not_found);
  }
}

TEST_F(KokoroEngine, DeadlinesAndAFullQueue) {
  EngineConfig config = folder_.config();
  config.max_queue = 2;
  config.max_batch_size = 1;
  engine(config);
  SpeechRequest request = phonemes_request("həlˈO.");
  request.timeout = std::chrono::milliseconds(1);
  std::string words;
  for (int i = 0; i < 60; ++i) words += "həlˈO wˈɜɹld. ";
  request.phonemes = words;
  expect_refused(request, ErrorCode::deadline_exceeded, "time was up");
  EXPECT_EQ(engine_->statistics().expired, 1u);
  request.timeout = {};
  std::vector<Speech> speeches;
  const Error full = error_of([&] {
    for (int i = 0; i < 50; ++i) speeches.push_back(engine_->submit(request));
  });
  EXPECT_EQ(full.code(), ErrorCode::resource_exhausted);
  EXPECT_THAT(full.message(), HasSubstr("queue is full"));
  EXPECT_GE(engine_->statistics().refused, 1u);
}

TEST_F(KokoroEngine, ReportsHealthAndReloadsAcrossFamilies) {
  EngineConfig config = folder_.config();
  config.warm_up = true;
  engine(config);
  const Health health = engine_->health();
  EXPECT_EQ(health.state, EngineState::ready);
  EXPECT_EQ(health.formats, (FormatNames{"float32", "float32", "", ""}));
  EXPECT_EQ(in_words(health.formats), "float32");
  EXPECT_EQ(health.memory.at(0).name, "model");
  EXPECT_GT(health.memory.at(0).bytes, 1 << 20);
  EXPECT_EQ(health.statistics.completed, 1u);
  EXPECT_EQ(engine_->self_test().error, "");
  EngineConfig fish = config;
  fish.model = std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/set_a";
  fish.cache_dir = "none";
  fish.warm_up = false;
  engine_->reload(fish);
  EXPECT_EQ(engine_->traits().family, "s1");
  EXPECT_THAT(engine_->voices().list(), IsEmpty());
  expect_refused(phonemes_request("həlˈO."), ErrorCode::unsupported, "phonemes");
  EXPECT_EQ(error_of([&] { engine_->phonemize("hello"); }).code(), ErrorCode::unsupported);
  engine_->reload(config);
  EXPECT_FALSE(engine_->submit(phonemes_request("həlˈO.")).read_all().empty());
  engine_->stop();
  EXPECT_EQ(error_of([&] { engine_->submit(phonemes_request("həlˈO.")); }).code(), ErrorCode::unavailable);
}

TEST_F(KokoroEngine, CallbacksAreCalled) {
  engine();
  const std::vector<float> wanted = engine_->submit(phonemes_request("həlˈO.")).read_all();
  std::vector<float> heard;
  std::promise<SpeechSummary> ended;
  Speech speech = engine_->submit(
      phonemes_request("həlˈO."),
      {.on_audio =
           [&](std::span<const float> piece) { heard.insert(heard.end(), piece.begin(), piece.end()); },
       .on_end = [&](const SpeechSummary& summary, const Error*) { ended.set_value(summary); }});
  EXPECT_EQ(ended.get_future().get().samples, std::ssize(wanted));
  EXPECT_EQ(heard, wanted);
}

}  // namespace
}  // namespace shoal::runtime
