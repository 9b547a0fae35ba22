// A Kokoro model behind the routes.
#include <fstream>
#include <gmock/gmock.h>

#include "base/log.h"
#include "server/routes/kokoro_testing.h"
#include "weights/torch_zip.h"

namespace shoal::server {
namespace {

using ::testing::AllOf;
using testing::Answered;
using testing::at;
using testing::body_value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::json_request;
using testing::list_at;
using ::testing::Not;
using testing::number_at;
using testing::sound_of;
using testing::speaking_routes;
using testing::spoken_by;
using ::testing::StartsWith;
using testing::text_at;

class KokoroRoutes : public ::testing::Test {
 protected:
  Answered ask(const std::string& path, const std::string& body) {
    return bench.ask(json_request(path, body));
  }
  // `fields` of a request whose sound is bare 16-bit PCM at the model's rate.
  Answered speech(const std::string& fields) {
    return ask("/v1/audio/speech", R"({"input":"Hello there, the moon.","seed":7,"response_format":"pcm")" +
                                       (fields.empty() ? "" : "," + fields) + "}");
  }
  std::string pcm(SpeechRequest request) { return testing::pcm_of(sound_of(kokoro, std::move(request))); }
  void expect_refused(const Answered& answered, int status, std::initializer_list<std::string_view> where,
                      const std::string& what) {
    EXPECT_EQ(answered.status, status) << answered.body().substr(0, 300);
    EXPECT_THAT(text_at(body_value(answered), where), HasSubstr(what));
  }
  void expect_openai(const Answered& answered, const std::string& param, int status = 400) {
    expect_refused(answered, status, {"error", "param"}, param);
  }

  Engine& kokoro = testing::shared_kokoro();
  testing::RouteBench bench{speaking_routes, kokoro};
};

TEST_F(KokoroRoutes, SpeechTakesWhatKokoroFastApisClientsSend) {
  SpeechRequest request = spoken_by("af_one", "Hello there, the moon.");
  const std::string usual = pcm(request);
  // Neither model nor voice is required; what that server has unasked changes nothing.
  EXPECT_TRUE(speech("").body() == usual);
  EXPECT_TRUE(speech(R"("model":"kokoro","voice":"af_one","speed":1.0,"stream":true,"return_timing":false,)"
                     R"("return_download_link":false,"download_format":null,"lang_code":"a",)"
                     R"("volume_multiplier":1.0,"allow_voice_tags":false,"voice_aliases":null,"ssml":false,)"
                     R"("normalization_options":{"normalize":true,"unit_normalization":false,)"
                     R"("url_normalization":true,"email_normalization":true,)"
                     R"("optional_pluralization_normalization":true,"phone_normalization":true,)"
                     R"("replace_remaining_symbols":true})")
                  .body() == usual);
  request.speed = 2;
  EXPECT_TRUE(speech(R"("voice":"af_one","speed":2)").body() == pcm(request));
  request.speed = 1;
  request.voice = "af_one(2)+bm_two";
  EXPECT_TRUE(speech(R"x("voice":"af_one(4)+bm_two(2)")x").body() == pcm(request));
  request.voice = "am_adam";  // what alloy stands for
  EXPECT_TRUE(speech(R"("voice":"alloy")").body() == pcm(request));
  EXPECT_TRUE(speech(R"("voice":"nova")").body() == usual) << "its voice is not there: the model's own";
  request = spoken_by("af_one", "Hello there, the moon.");
  std::vector<float> louder = sound_of(kokoro, request);
  for (float& sample : louder) sample *= 3;
  EXPECT_TRUE(speech(R"("voice":"af_one","volume_multiplier":3)").body() == testing::pcm_of(louder));
}

TEST_F(KokoroRoutes, SpeechRefusesByName) {
  const std::pair<std::string, std::string> refused[] = {
      {R"("speed":0)", "speed"},
      {R"("speed":4.5)", "speed"},
      {R"("voice":"af_hone")", "voice"},
      {R"("voice":"af_one+")", "voice"},
      {R"("lang_code":"xx")", "lang_code"},
      {R"("lang_code":"j")", "lang_code"},
      {R"("temperature":0.5)", "temperature"},
      {R"("top_p":0.5)", "top_p"},
      {R"("top_k":5)", "top_k"},
      {R"("repetition_penalty":1.5)", "repetition_penalty"},
      {R"("max_new_tokens":5)", "max_new_tokens"},
      {R"("chunk_length":100)", "chunk_length"},
      {R"("special_tokens":true)", "special_tokens"},
      {R"("references":[{"audio":"AAAA","text":"x"}])", "references"},
      {R"("return_timing":true)", "return_timing"},
      {R"("return_download_link":true)", "return_download_link"},
      {R"("allow_voice_tags":true)", "allow_voice_tags"},
      {R"("volume_multiplier":-1)", "volume_multiplier"},
      {R"("normalization_options":{"url_normalization":false})", "normalization_options.url_normalization"},
      {R"("normalize":true,"normalization_options":{"normalize":false})", "normalization_options.normalize"},
  };
  for (const auto& [field, param] : refused) {
    SCOPED_TRACE(field);
    expect_openai(speech(field), param);
  }
  expect_openai(ask("/v1/audio/speech", R"({"input":""})"), "input");
  expect_openai(ask("/v1/audio/speech", R"({"input":"?!"})"), "input");
  expect_openai(ask("/v1/audio/speech", R"({"input":"Hello [pause:99s]"})"), "input");
  expect_openai(ask("/v1/audio/speech", R"({"input":")" + std::string(100'000, 'a') + R"("})"), "input");
  expect_openai(speech(R"("model":"gpt-9")"), "model", 404);
}

TEST_F(KokoroRoutes, WhatIsDroppedIsToldOrRefused) {
  const Answered warned =
      ask("/dev/generate_from_phonemes", R"({"phonemes":"həlˈO¿ ðˈɛɹ.","voice":"af_one"})");
  EXPECT_EQ(warned.status, 200);
  EXPECT_THAT(warned.header("x-shoal-warnings"), AllOf(StartsWith("[\""), HasSubstr("U+00BF")));
  const Answered foreign = speech(R"("voice":"jf_three","lang_code":"en-us")");
  EXPECT_EQ(foreign.status, 200);
  EXPECT_THAT(foreign.header("x-shoal-warnings"), HasSubstr("jf_three"));
  EXPECT_EQ(speech("").header("x-shoal-warnings"), "");
  const Answered events = speech(R"("voice":"jf_three","lang_code":"en-us","stream_format":"sse")");
  EXPECT_THAT(events.body(), HasSubstr(R"("warnings":["voice)"));
  const Answered strict =
      ask("/dev/generate_from_phonemes", R"({"phonemes":"həlˈO¿.","voice":"af_one","strict_phonemes":true})");
  expect_refused(strict, 400, {"detail", "message"}, "U+00BF");
}

TEST_F(KokoroRoutes, FishSpeechsFieldsThatClientsSendUnaskedSayNothing) {
  const std::string sound = pcm(spoken_by("af_one", "Hello there."));
  const std::string usual =
      R"("text":"Hello there.","seed":7,"format":"pcm","chunk_length":200,"max_new_tokens":1024,"top_p":0.8,)"
      R"("repetition_penalty":1.1,"temperature":0.8,"reference_id":"af_one")";
  EXPECT_TRUE(ask("/v1/tts", "{" + usual + "}").body() == sound);
  const std::string of_official_client =
      R"({"text":"Hello there.","references":[],"reference_id":"af_one","format":"pcm","max_new_tokens":1024,)"
      R"("chunk_length":300,"top_p":0.8,"repetition_penalty":1.1,"temperature":0.8,"streaming":true,)"
      R"("use_memory_cache":"off","seed":7})";
  EXPECT_TRUE(ask("/v1/tts", of_official_client).body() == sound);
  SpeechRequest fast = spoken_by("af_one", "Hello there.");
  fast.speed = 1.5;
  fast.language = "en-us";
  EXPECT_TRUE(ask("/v1/tts", "{" + usual + R"(,"speed":1.5,"language":"en-us"})").body() == pcm(fast));
  const std::pair<std::string, int> refused[] = {
      {R"({"text":"Hello.","temperature":0.7})", 400},  {R"({"text":"Hello.","reference_id":"nobody"})", 404},
      {R"({"text":"Hello.","speed":0})", 422},          {R"({"text":"Hello.","language":"xx"})", 400},
      {R"({"text":"Hello.","model":"gpt-9"})", 404},    {R"({"text":"","model":"kokoro"})", 400},
      {R"({"text":"Hello.","chunk_length":250})", 400}, {R"({"text":"Hello.","special_tokens":true})", 400},
  };
  for (const auto& [body, status] : refused) {
    const Answered answered = ask("/v1/tts", body);
    EXPECT_EQ(answered.status, status) << body;
    EXPECT_EQ(at(body_value(answered), {"statusCode"}), Value{int64_t{status}});
  }
}

TEST_F(KokoroRoutes, ABatchMixesVoicesAndSaysWhatFails) {
  const Answered answered =
      ask("/v1/tts/batch", R"({"format":"pcm","model":"kokoro","seed":5,"speed":2,"items":[)"
                           R"({"text":"Hello there.","voice":"af_one","seed":7},)"
                           R"({"text":"The moon.","voice":"af_one+bm_two","speed":1,"seed":7},)"
                           R"({"text":"The moon.","voice":"nobody"},)"
                           R"({"text":"The moon.","temperature":0.3},)"
                           R"({"text":"The moon.","voice":"jf_three","language":"a"}]})");
  ASSERT_EQ(answered.status, 200) << answered.body();
  const Value body = body_value(answered);
  const Value::Array results = list_at(body, "results");
  ASSERT_EQ(results.size(), 5u);
  SpeechRequest first = spoken_by("af_one", "Hello there.");
  first.speed = 2;
  EXPECT_EQ(text_at(results[0], {"audio_base64"}), to_base64(pcm(first)));
  EXPECT_EQ(text_at(results[1], {"audio_base64"}), to_base64(pcm(spoken_by("af_one+bm_two", "The moon."))));
  EXPECT_THAT(text_at(results[2], {"error"}), HasSubstr("nobody"));
  EXPECT_THAT(text_at(results[3], {"error"}), HasSubstr("temperature"));
  EXPECT_EQ(at(results[4], {"success"}), Value{true});
  EXPECT_EQ(list_at(results[4], "warnings").size(), 1u);
}

TEST_F(KokoroRoutes, TheUsualValuesOfBatchClientsSayNothing) {
  const std::string items = R"("seed":5,"items":[{"text":"Hello there.","voice":"af_one"}]})";
  const Answered plain = ask("/v1/tts/batch", R"({"model":"kokoro",)" + items);
  const Answered usual =
      ask("/v1/tts/batch", R"({"model":"kokoro","max_new_tokens":2048,"temperature":0.7,"top_p":0.8,)"
                           R"("repetition_penalty":1.1,"chunk_length":200,)" +
                               items);
  const Value result = list_at(body_value(usual), "results").at(0);
  ASSERT_EQ(at(result, {"success"}), Value{true}) << usual.body();
  EXPECT_EQ(text_at(result, {"audio_base64"}),
            text_at(list_at(body_value(plain), "results").at(0), {"audio_base64"}));
}

TEST_F(KokoroRoutes, EverythingTakesAPlaceAndPhonemizeEndsWithItsClient) {
  for (const Route& route : kokoro_routes({})) EXPECT_TRUE(route.takes_slot) << route.path;
  // Nobody asks the engine, which would refuse the language.
  const Answered gone = bench.ask(json_request("/dev/phonemize", R"({"text":"Hello","language":"q"})"),
                                  [](testing::FakeExchange& exchange) { exchange.leave(); });
  ASSERT_TRUE(gone.error);
  EXPECT_EQ(gone.error->code(), ErrorCode::cancelled) << gone.error->message();
}

TEST_F(KokoroRoutes, PhonemizeIsNotBegunAfterItsTime) {
  ServerConfig config;
  config.max_timeout_s = 0;  // over when it arrives
  testing::RouteBench late(kokoro_routes, kokoro, config);
  // The engine would refuse the language.
  const Answered answer = late.ask(json_request("/dev/phonemize", R"({"text":"Hello","language":"q"})"));
  EXPECT_EQ(answer.status, 504) << answer.body();
}

TEST_F(KokoroRoutes, Phonemize) {
  const Answered answered =
      ask("/dev/phonemize", R"({"text":"Hello there! [pause:1.5s] The moon.","language":"a"})");
  ASSERT_EQ(answered.status, 200) << answered.body();
  const Value body = body_value(answered);
  EXPECT_EQ(text_at(body, {"phonemes"}), "həlˈO ðˈɛɹ![pause:1.5s]ðə mˈun.");
  std::vector<int64_t> ids;
  for (const Value& id : list_at(body, "tokens")) ids.push_back(*id.as<int64_t>());
  std::vector<int64_t> wanted;
  for (const PhonemeChunk& chunk : kokoro.phonemize("Hello there! [pause:1.5s] The moon.", "a").chunks)
    wanted.insert(wanted.end(), chunk.ids.begin(), chunk.ids.end());
  EXPECT_EQ(ids, wanted);
  // What it gives can be spoken.
  EXPECT_EQ(ask("/dev/generate_from_phonemes",
                write_json({Value::Object{{"phonemes", {text_at(body, {"phonemes"})}},
                                          {"voice", {std::string("af_one")}}}}))
                .status,
            200);
  for (const auto& [wrong, param] : std::vector<std::pair<std::string, std::string>>{
           {R"({"language":"a"})", "text"},
           {R"({"text":""})", "text"},
           {R"({"text":"Hello","language":"q"})", "language"},
           {R"({"text":"Hello","language":"ja"})", "language"},
           {R"({"text":"Bonjour","language":"f"})", "language"},  // which no voice speaks
           {R"({"text":"Hello","model":"gpt-9"})", "model"},
           {R"({"text":")" + std::string(100'000, 'a') + R"("})", "text"}}) {
    const Answered refused = ask("/dev/phonemize", wrong);
    EXPECT_TRUE(refused.status == 400 || refused.status == 404) << refused.body();
    EXPECT_EQ(text_at(body_value(refused), {"detail", "param"}), param) << refused.body();
    EXPECT_THAT(refused.body(), Not(HasSubstr(kokoro.config().model)));
  }
}

TEST_F(KokoroRoutes, PhonemesAreSpokenAsTheyAre) {
  SpeechRequest request = spoken_by("bm_two", "");
  request.phonemes = "həlˈO ðˈɛɹ.";
  request.speed = 1.5;
  const std::string wanted = pcm(request);
  const Answered answered = ask("/dev/generate_from_phonemes",
                                R"({"phonemes":"həlˈO ðˈɛɹ.","voice":"bm_two","seed":7,"speed":1.5})");
  EXPECT_EQ(answered.content_type, "audio/wav");
  EXPECT_TRUE(answered.body().ends_with(wanted));
  EXPECT_EQ(answered.body().size(), wanted.size() + 44);
  for (const char* wrong : {R"({"voice":"af_one"})", R"({"phonemes":"","voice":"af_one"})",
                            R"({"phonemes":" ","voice":"af_one"})", R"({"phonemes":"¿","voice":"af_one"})"}) {
    const Answered refused = ask("/dev/generate_from_phonemes", wrong);
    EXPECT_EQ(refused.status, 400) << wrong;
    EXPECT_EQ(text_at(body_value(refused), {"detail", "param"}), "phonemes") << refused.body();
  }
}

struct Captions {
  std::string audio;
  std::vector<std::string> words;
  std::vector<double> starts, ends;
  size_t lines = 0;
};

Captions captions_of(const std::string& body) {
  Captions all;
  for (size_t from = 0; from < body.size();) {
    const size_t to = std::min(body.find('\n', from), body.size());
    const Value line = read_json(std::string_view(body).substr(from, to - from));
    from = to + 1;
    ++all.lines;
    EXPECT_EQ(text_at(line, {"audio_format"}), "audio/pcm");
    all.audio += *from_base64(text_at(line, {"audio"}));
    const Value times = at(line, {"timestamps"});
    for (const Value& word : *times.as<Value::Array>()) {
      all.words.push_back(text_at(word, {"word"}));
      all.starts.push_back(number_at(word, "start_time"));
      all.ends.push_back(number_at(word, "end_time"));
    }
    // No word comes before the sound in which it ends.
    if (!all.ends.empty()) {
      EXPECT_LE(all.ends.back() * 48000, static_cast<double>(all.audio.size()) + 1);
    }
  }
  return all;
}

TEST_F(KokoroRoutes, CaptionsComeWithTheirSound) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += "Hello there, the moon is cold. Fish swim under the moon. ";
  const SpeechRequest request = spoken_by("af_one", text);
  const std::string head = R"({"input":")" + text + R"(","voice":"af_one","seed":7,"response_format":"pcm")";
  const Captions whole = captions_of(ask("/dev/captioned_speech", head + R"(,"stream":false})").body());
  const Answered streamed = ask("/dev/captioned_speech", head + "}");
  EXPECT_EQ(streamed.content_type, "application/x-ndjson");
  const Captions lines = captions_of(streamed.body());
  EXPECT_EQ(whole.lines, 1u);
  EXPECT_GT(lines.lines, 1u);
  EXPECT_TRUE(whole.audio == pcm(request));
  EXPECT_TRUE(lines.audio == whole.audio);
  EXPECT_EQ(lines.words, whole.words);
  EXPECT_EQ(lines.starts, whole.starts);
  EXPECT_EQ(lines.ends, whole.ends);
  ASSERT_EQ(whole.words.size(), 4u * 14);
  EXPECT_THAT(std::vector(whole.words.begin(), whole.words.begin() + 4),
              ElementsAre("Hello", "there", ",", "the"));
  Speech speech = kokoro.submit(request);
  speech.read_all();
  std::vector<double> ends;
  for (const SpokenWord& word : speech.words()) ends.push_back(word.end_s);
  EXPECT_EQ(whole.ends, ends);
  const Value without =
      body_value(ask("/dev/captioned_speech", head + R"(,"stream":false,"return_timestamps":false})"));
  EXPECT_TRUE(at(without, {"timestamps"}).is_null());
  const Answered refused = ask("/dev/captioned_speech", head + R"(,"speed":9})");
  expect_refused(refused, 400, {"detail", "param"}, "speed");
  expect_refused(ask("/dev/captioned_speech", R"({"input":"Hello","voice":"x"})"), 400, {"detail", "param"},
                 "voice");
}

std::vector<float> tensor_in(const std::string& file) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(file));
  const weights::TensorLocation tensor = weights::parse_torch_tensor(bytes, "answer");
  EXPECT_EQ(tensor.shape, (Shape{510, 1, 256}));
  const Tensor copy = weights::copy_dense(bytes, tensor);
  return {copy.span<float>().begin(), copy.span<float>().end()};
}

TEST_F(KokoroRoutes, MixedVoicesAreAFile) {
  const Answered mix = ask("/v1/audio/voices/combine", R"x("af_one(2)+bm_two(1)")x");
  ASSERT_EQ(mix.status, 200) << mix.body();
  EXPECT_EQ(mix.content_type, "application/octet-stream");
  EXPECT_THAT(mix.header("Content-Disposition"), HasSubstr("af_one(2)+bm_two(1).pt"));
  EXPECT_EQ(tensor_in(mix.body()), kokoro.voice_styles("af_one(2)+bm_two"));
  const std::string even = ask("/v1/audio/voices/combine", R"("af_one+bm_two")").body();
  EXPECT_TRUE(ask("/v1/audio/voices/combine", R"(["af_one","bm_two"])").body() == even);
  EXPECT_TRUE(ask("/v1/audio/voices/combine", R"({"voices":["af_one","bm_two"],"model":"kokoro"})").body() ==
              even);
  for (const char* wrong :
       {R"("af_one")", R"x("af_one(2)")x", R"(["af_one"])", "[]", R"("")", R"({"voices":"af_one"})", "{}"})
    expect_openai(ask("/v1/audio/voices/combine", wrong), "voices");
  for (const char* wrong : {R"("af_one+nobody")", R"x("af_one+(2)")x"})
    expect_openai(ask("/v1/audio/voices/combine", wrong), "voice");
  for (const char* wrong : {"7", "{", R"([1,2])"})
    EXPECT_EQ(ask("/v1/audio/voices/combine", wrong).status, 400) << wrong;
}

// All remarks while it lives.
class Remarks {
 public:
  Remarks() {
    set_log_sink([this](LogLevel, std::string_view message) { (all += message) += '\n'; });
  }
  ~Remarks() { set_log_sink({}); }
  Remarks(const Remarks&) = delete;
  Remarks& operator=(const Remarks&) = delete;

  std::string all;
};

TEST_F(KokoroRoutes, ThePhonemizersPathIsForTheLogAlone) {
  const std::string& path = kokoro.config().phonemizer;
  for (const auto& [route, body] : std::vector<std::pair<std::string, std::string>>{
           {"/dev/phonemize", R"({"text":"Bonjour","language":"a"})"},
           {"/v1/audio/speech", R"({"input":"Bonjour","voice":"af_one"})"}}) {
    SCOPED_TRACE(route);
    const Remarks remarks;
    const Answered answered = ask(route, body);
    EXPECT_EQ(answered.status, 503);
    EXPECT_THAT(answered.body(), AllOf(HasSubstr("phonemizer: "), Not(HasSubstr(path))));
    EXPECT_THAT(remarks.all, AllOf(HasSubstr("test-1"), HasSubstr(path)));
  }
}

TEST_F(KokoroRoutes, TheFilesOfVoicesAreForTheLogAlone) {
  const testing::KokoroFolder folder;
  const EngineConfig config = folder.config();
  std::ofstream(config.model + "/voices/broken.pt") << "no voice";
  testing::RouteBench bench_of_broken(speaking_routes, ServerConfig(), config);
  const Remarks remarks;
  const Answered answered = bench_of_broken.ask(json_request("/v1/audio/voices/combine", R"("broken")"));
  EXPECT_EQ(answered.status, 500);
  EXPECT_THAT(answered.body(), Not(HasSubstr(config.model)));
  EXPECT_THAT(remarks.all, HasSubstr(config.model + "/voices/broken.pt"));
}

// The sound and its text lie in memory together while the one is made of the other, then the text alone.
TEST_F(KokoroRoutes, WholeCaptionsKeepWithinTheMemoryOfAnswers) {
  ServerConfig config;
  config.max_body_memory_mb = config.max_body_mb = 1;
  testing::RouteBench narrow(speaking_routes, kokoro, config);
  BodyBudget& answers = narrow.services().answers;
  int64_t held = 0;
  const auto ask_narrow = [&](const char* route) {
    const Request request = json_request(route, R"({"input":"Hello there, the moon is cold.","seed":7,)"
                                                R"("response_format":"wav","stream":false})");
    return narrow.ask(request, [&](testing::FakeExchange& exchange) {
      exchange.on_piece = [&](testing::FakeExchange&) { held = answers.held(); };
    });
  };
  const size_t file = ask_narrow("/v1/audio/speech").body().size();
  const int64_t others = (int64_t{1} << 20) - static_cast<int64_t>(file + base64_size(file) / 2);
  ASSERT_TRUE(answers.take(others));  // room is left for the file and half of its text
  EXPECT_EQ(ask_narrow("/v1/audio/speech").status, 200);
  expect_refused(ask_narrow("/dev/captioned_speech"), 429, {"detail", "message"}, "max_body_memory_mb");
  EXPECT_EQ(answers.held(), others);
  answers.give_back(others);

  const Answered captions = ask_narrow("/dev/captioned_speech");
  EXPECT_EQ(captions.status, 200) << captions.body();
  EXPECT_EQ(held, std::ssize(captions.body()));
  EXPECT_EQ(answers.held(), 0);
}

}  // namespace
}  // namespace shoal::server
