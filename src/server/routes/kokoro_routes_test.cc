// Speech of a Kokoro model through the routes that all models share.
#include <algorithm>
#include <gmock/gmock.h>

#include "base/base64.h"
#include "server/routes/kokoro_testing.h"

namespace shoal::server {
namespace {

using ::testing::AllOf;
using testing::Answered;
using testing::at;
using testing::body_value;
using ::testing::HasSubstr;
using testing::KokoroRoutes;
using testing::list_at;
using testing::sound_of;
using testing::spoken_by;
using ::testing::StartsWith;
using testing::text_at;

TEST_F(KokoroRoutes, SpeechAcceptsTheFieldsOfKokoroFastApiClients) {
  SpeechRequest request = spoken_by("af_one", "Hello there, the moon.");
  const std::string usual = pcm(request);
  // Neither model nor voice is required; fields that clients of that server send by default change nothing.
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
  request.voice = "am_adam";  // the target of alloy
  EXPECT_TRUE(speech(R"("voice":"alloy")").body() == pcm(request));
  EXPECT_TRUE(speech(R"("voice":"nova")").body() == usual) << "its voice is not there: the model's own";
  request = spoken_by("af_one", "Hello there, the moon.");
  std::vector<float> louder = sound_of(kokoro, request);
  for (float& sample : louder) sample = std::clamp(sample * 3, -1.0f, 1.0f);
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
      {R"("special_tokens":true)", "special_tokens"},
      {R"("references":[{"audio":"AAAA","text":"x"}])", "references"},
      {R"("allow_voice_tags":true)", "allow_voice_tags"},
      {R"("volume_multiplier":-1)", "volume_multiplier"},
      {R"("normalize":true,"normalization_options":{"normalize":false})", "normalization_options.normalize"},
  };
  for (const auto& [field, param] : refused) {
    SCOPED_TRACE(field);
    expect_openai(speech(field), param);
  }
  expect_openai(ask("/v1/audio/speech", R"({"input":""})"), "input");
  expect_openai(ask("/v1/audio/speech", R"({"input":"  "})"), "input");
  expect_openai(ask("/v1/audio/speech", R"({"input":"Hello [pause:99s]"})"), "input");
  expect_openai(ask("/v1/audio/speech", R"({"input":")" + std::string(100'000, 'a') + R"("})"), "input");
  expect_openai(speech(R"("model":"gpt-9")"), "model", 404);
}

TEST_F(KokoroRoutes, FieldsWithoutEffectAreReportedOrRefusedWhenStrict) {
  testing::RouteBench strict(testing::speaking_routes, kokoro, {.strict = true});
  const std::string usual = speech("").body();
  const std::pair<std::string, std::string> unused[] = {
      {R"("temperature":0.5)", "temperature"},
      {R"("top_p":0.5)", "top_p"},
      {R"("top_k":5)", "top_k"},
      {R"("repetition_penalty":1.5)", "repetition_penalty"},
      {R"("max_new_tokens":5)", "max_new_tokens"},
      {R"("chunk_length":100)", "chunk_length"},
      {R"("instructions":"whisper")", "instructions"},
  };
  for (const auto& [field, name] : unused) {
    SCOPED_TRACE(field);
    const Answered taken = speech(field);
    EXPECT_TRUE(taken.body() == usual);
    EXPECT_THAT(taken.header("x-shoal-warnings"), StartsWith("[\"" + name + ": has no effect: "));
    expect_openai(
        strict.ask(testing::json_request("/v1/audio/speech", R"({"input":"Hello there.",)" + field + "}")),
        name);
  }
}

TEST_F(KokoroRoutes, DroppedPhonemesAreReportedOrRefused) {
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

TEST_F(KokoroRoutes, DefaultFieldsOfFishClientsCauseNoWarning) {
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
      {R"({"text":"Hello.","reference_id":"nobody"})", 404},
      {R"({"text":"Hello.","speed":0})", 422},
      {R"({"text":"Hello.","language":"xx"})", 400},
      {R"({"text":"Hello.","model":"gpt-9"})", 404},
      {R"({"text":"","model":"kokoro"})", 400},
      {R"({"text":"Hello.","special_tokens":true})", 400},
  };
  for (const auto& [body, status] : refused) {
    const Answered answered = ask("/v1/tts", body);
    EXPECT_EQ(answered.status, status) << body;
    EXPECT_EQ(at(body_value(answered), {"statusCode"}), Value{int64_t{status}});
  }
}

TEST_F(KokoroRoutes, ABatchMixesVoicesAndReportsFailedItems) {
  const Answered answered =
      ask("/v1/tts/batch", R"({"format":"pcm","model":"kokoro","seed":5,"speed":2,"items":[)"
                           R"({"text":"Hello there.","voice":"af_one","seed":7},)"
                           R"({"text":"The moon.","voice":"af_one+bm_two","speed":1,"seed":7},)"
                           R"({"text":"The moon.","voice":"nobody"},)"
                           R"({"text":"The moon.","voice":"af_one","temperature":0.3},)"
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
  EXPECT_THAT(text_at(list_at(results[3], "warnings").at(0), {}), StartsWith("temperature: "));
  EXPECT_EQ(at(results[4], {"success"}), Value{true});
  EXPECT_EQ(list_at(results[4], "warnings").size(), 1u);
}

TEST_F(KokoroRoutes, UsualValuesOfBatchClientsCauseNoWarning) {
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

}  // namespace
}  // namespace shoal::server
