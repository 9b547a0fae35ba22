// The routes that only Kokoro models have: phonemes, captions, mixed voices.
#include <fstream>
#include <gmock/gmock.h>

#include "base/base64.h"
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
using testing::KokoroRoutes;
using testing::list_at;
using ::testing::Not;
using testing::number_at;
using testing::speaking_routes;
using testing::spoken_by;
using testing::text_at;

TEST_F(KokoroRoutes, EveryRouteTakesASlotAndPhonemizeEndsWithItsClient) {
  for (const Route& route : kokoro_routes({})) EXPECT_TRUE(route.takes_slot) << route.path;
  // The request ends before it reaches the engine, which would refuse the language.
  const Answered gone = bench.ask(json_request("/dev/phonemize", R"({"text":"Hello","language":"q"})"),
                                  [](testing::FakeExchange& exchange) { exchange.leave(); });
  ASSERT_TRUE(gone.error);
  EXPECT_EQ(gone.error->code(), ErrorCode::cancelled) << gone.error->message();
}

TEST_F(KokoroRoutes, PhonemizeDoesNotStartAfterItsDeadline) {
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
  // The returned phonemes can be spoken.
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

TEST_F(KokoroRoutes, PhonemesAreSpokenUnchanged) {
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

TEST_F(KokoroRoutes, CaptionsArriveWithTheirSound) {
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

TEST_F(KokoroRoutes, AMixOfVoicesIsReturnedAsAFile) {
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

TEST_F(KokoroRoutes, ThePhonemizersPathAppearsOnlyInTheLog) {
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

TEST_F(KokoroRoutes, VoiceFilesAppearOnlyInTheLog) {
  const testing::KokoroFolder folder;
  const EngineConfig config = folder.config();
  std::ofstream(config.model + "/voices/broken.pt") << "no voice";
  testing::RouteBench bench_of_broken(speaking_routes, ServerConfig(), config);
  const Remarks remarks;
  const Answered answered = bench_of_broken.ask(json_request("/v1/audio/voices/combine", R"("broken")"));
  EXPECT_EQ(answered.status, 400);
  EXPECT_THAT(answered.body(), Not(HasSubstr(config.model)));
  EXPECT_THAT(remarks.all, HasSubstr(config.model + "/voices/broken.pt"));
}

// Sound and text are in memory together while the text is made from the sound, then only the text.
TEST_F(KokoroRoutes, WholeCaptionsStayWithinTheMemoryOfAnswers) {
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
