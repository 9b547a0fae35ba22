#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "server/routes/fish_request.h"
#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::at;
using testing::body_value;
using testing::decoded;
using testing::get_request;
using testing::json_request;
using testing::RouteBench;
using testing::shared_engine;
using testing::sound_of;
using testing::spoken_for_fish;
using testing::text_at;

const std::string kFishText = "One small fish swims.";

class Fish : public ::testing::Test {
 protected:
  RouteBench bench{fish_routes, shared_engine()};

  Answered say(const std::string& fields, const std::string& text = kFishText) {
    return bench.ask(
        json_request("/v1/tts", R"({"seed":7,"text":")" + text + '"' + testing::with_length(fields)));
  }
  Answered post(const std::string& type, std::string body) {
    Request request = json_request("/v1/tts", std::move(body));
    request.headers = {{"Content-Type", type}};
    return bench.ask(std::move(request));
  }
};

TEST_F(Fish, AnswersWithAWholeFileByDefault) {
  const std::vector<float> sound = sound_of(bench.engine(), spoken_for_fish(kFishText));
  const Answered wav = say("");
  EXPECT_EQ(wav.status, 200);
  EXPECT_FALSE(wav.streamed);
  EXPECT_EQ(wav.content_type, "audio/wav");
  EXPECT_EQ(wav.header("Content-Disposition"), "attachment; filename=audio.wav");
  EXPECT_TRUE(wav.body() ==
              testing::as_string(audio::encode(audio::Format::wav, {.sample_rate_hz = 16000}, sound)));
  const std::tuple<std::string, std::string> types[] = {{"pcm", "application/octet-stream"},
                                                        {"mp3", "audio/mpeg"},
                                                        {"opus", "audio/ogg"},
                                                        {"aac", "audio/aac"},
                                                        {"flac", "audio/flac"}};
  for (const auto& [format, type] : types) {
    const Answered answered = say(R"("format":")" + format + '"');
    EXPECT_EQ(answered.content_type, type);
    EXPECT_EQ(answered.header("Content-Disposition"), "attachment; filename=audio." + format);
    if (format == "mp3" || format == "opus" || format == "aac") continue;
    EXPECT_TRUE((format == "pcm" ? answered.body() : decoded(answered.body())) == testing::pcm_of(sound));
  }
}

TEST_F(Fish, StreamedSoundEqualsTheWholeFile) {
  const std::string want = testing::pcm_of(sound_of(bench.engine(), spoken_for_fish(kFishText)));
  const Answered wav = say(R"("streaming":true)");
  EXPECT_TRUE(wav.streamed);
  EXPECT_TRUE(wav.whole);
  EXPECT_EQ(wav.content_type, "audio/wav");
  EXPECT_TRUE(wav.body() == want) << "bare samples, as the official client expects";
  EXPECT_EQ(wav.header("X-Accel-Buffering"), "no");
  EXPECT_EQ(wav.header("Cache-Control"), "no-cache");
  EXPECT_TRUE(say(R"("streaming":true,"format":"pcm")").body() == want);
  EXPECT_TRUE(decoded(say(R"("streaming":true,"format":"flac")").body()) == want);
  EXPECT_EQ(say(R"("streaming":true,"format":"mp3")").status, 200);
  EXPECT_EQ(say(R"("streaming":true,"format":"opus")").status, 200);
}

TEST_F(Fish, EveryFieldReachesTheEngine) {
  using Change = std::function<void(SpeechRequest&)>;
  const std::pair<std::string, Change> fields[] = {
      {R"("temperature":0.3)", [](auto& r) { r.temperature = 0.3f; }},
      {R"("top_p":0.2)", [](auto& r) { r.top_p = 0.2f; }},
      {R"("repetition_penalty":2)", [](auto& r) { r.repetition_penalty = 2; }},
      {R"("max_new_tokens":5)", [](auto& r) { r.max_new_tokens = 5; }},
      {R"("chunk_length":100)", [](auto& r) { r.chunk_length = 100; }},
      {R"("normalize":false)", [](auto& r) { r.normalise = false; }},
      {R"("special_tokens":true)", [](auto& r) { r.special_tokens = true; }},
      {R"("top_k":2)", [](auto& r) { r.top_k = 2; }},
      {R"("reference_id":"anna")", [](auto& r) { r.voice = "anna"; }},
  };
  const std::string text =
      "There are 12 fish. They swim <|text|> under a cold and silver moon, far from here. Then they sleep, I "
      "say.";
  const std::string usual = say(R"("format":"pcm")", text).body();
  EXPECT_TRUE(usual == testing::pcm_of(sound_of(bench.engine(), spoken_for_fish(text))));
  EXPECT_TRUE(
      say(R"("format":"pcm","normalize":true,"latency":"balanced","use_memory_cache":"on")", text).body() ==
      usual);
  for (const auto& [field, change] : fields) {
    SpeechRequest request = spoken_for_fish(text);
    change(request);
    const std::string got = say(R"("format":"pcm",)" + field, text).body();
    EXPECT_TRUE(got == testing::pcm_of(sound_of(bench.engine(), request))) << field;
    EXPECT_FALSE(got == usual) << field << " changed nothing";
  }
  EXPECT_TRUE(say(R"("format":"pcm","sample_rate":24000)", text).body() ==
              testing::pcm_at(sound_of(bench.engine(), spoken_for_fish(text)), 16000, 24000));
}

TEST_F(Fish, MessagePackWithRawClips) {
  const std::string clip = testing::noise_wav(0.5, 3);
  SpeechRequest request = spoken_for_fish(kFishText);
  request.references = {{.audio = clip, .text = "some words"}};
  const std::string want = testing::pcm_of(sound_of(bench.engine(), request));
  const Value reference{Value::Object{{"audio", {Bytes{clip}}}, {"text", {std::string("some words")}}}};
  const Value body{Value::Object{{"text", {kFishText}},
                                 {"chunk_length", {int64_t{200}}},
                                 {"format", {std::string("wav")}},
                                 {"latency", {std::string("normal")}},
                                 {"references", {Value::Array{reference}}},
                                 {"reference_id", {nullptr}},
                                 {"seed", {int64_t{7}}},
                                 {"use_memory_cache", {std::string("off")}},
                                 {"normalize", {true}},
                                 {"streaming", {true}},
                                 {"max_new_tokens", {int64_t{20}}},
                                 {"top_p", {0.8}},
                                 {"repetition_penalty", {1.1}},
                                 {"temperature", {0.8}}}};
  const Answered answered = post("application/msgpack", write_msgpack(body));
  EXPECT_EQ(answered.status, 200) << answered.body().substr(0, 300);
  EXPECT_TRUE(answered.body() == want);
  // The same as JSON, in base64; and a stored voice comes before clips.
  const std::string clips = R"("references":[{"audio":")" + to_base64(clip) + R"(","text":"some words"}])";
  EXPECT_TRUE(say(R"("format":"pcm",)" + clips).body() == want);
  EXPECT_TRUE(say(R"("format":"pcm","reference_id":"anna",)" + clips).body() ==
              say(R"("format":"pcm","reference_id":"anna")").body());
}

TEST_F(Fish, Multipart) {
  const auto part = [](const std::string& name, const std::string& value) {
    return "--X\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
  };
  const Answered answered =
      post("multipart/form-data; boundary=X",
           part("text", kFishText) + part("seed", "7") + part("max_new_tokens", "20") +
               part("format", "pcm") + part("streaming", "true") + part("top_p", "0.8") + "--X--\r\n");
  EXPECT_EQ(answered.status, 200) << answered.body().substr(0, 300);
  EXPECT_TRUE(answered.streamed);
  EXPECT_TRUE(answered.body() == say(R"("format":"pcm")").body());
}

TEST_F(Fish, AFormCarriesClips) {
  const std::string first = testing::noise_wav(0.5, 1), second = testing::noise_wav(0.5, 2);
  const auto head = [](const std::string& name) {
    return "--X\r\nContent-Disposition: form-data; name=\"" + name;
  };
  const auto words = [&](const std::string& name, const std::string& value) {
    return head(name) + "\"\r\n\r\n" + value + "\r\n";
  };
  const auto file = [&](const std::string& name, const std::string& clip) {
    return head(name) + "\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" + clip + "\r\n";
  };
  const auto form = [&](const std::string& parts) {
    return post("multipart/form-data; boundary=X", words("text", kFishText) + words("seed", "7") +
                                                       words("max_new_tokens", "20") +
                                                       words("format", "pcm") + parts + "--X--\r\n");
  };
  SpeechRequest request = spoken_for_fish(kFishText);
  request.references = {{.audio = first, .text = "some words"}};
  const std::string want = testing::pcm_of(sound_of(bench.engine(), request));
  const std::string json = R"([{"audio":")" + to_base64(first) + R"(","text":"some words"}])";
  for (const std::string& parts :
       {file("reference_audio", first) + words("reference_text", "some words"),
        file("references[0][audio]", first) + words("references[0][text]", "some words"),
        words("references[0].text", "some words") + file("references[0].audio", first),
        words("references", json)}) {
    const Answered answered = form(parts);
    EXPECT_EQ(answered.status, 200) << answered.body().substr(0, 300);
    EXPECT_TRUE(answered.body() == want) << parts.substr(0, 80);
  }
  request.references.push_back({.audio = second, .text = "other words"});
  EXPECT_TRUE(form(file("reference_audio", first) + file("reference_audio", second) +
                   words("reference_text", "some words") + words("reference_text", "other words"))
                  .body() == testing::pcm_of(sound_of(bench.engine(), request)));
  const std::pair<std::string, std::string> refused[] = {
      {file("reference_audio", first), "reference_text"},
      {words("reference_text", "some words"), "reference_audio"},
      {words("references", "some words"), "references"},
      {words("references", "{}"), "references"},
      {file("references[0][audio]", first), "references[0].text"},
      {file("references[1][audio]", first), "references[1]"}};
  for (const auto& [parts, field] : refused) {
    const Answered answered = form(parts);
    EXPECT_EQ(answered.status, 422) << field;
    EXPECT_THAT(text_at(body_value(answered), {"message"}), ::testing::StartsWith(field));
  }
}

TEST_F(Fish, OtherContentTypesGet415) {
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", ""}) {
    const Answered answered = post(type, R"({"text":"A fish."})");
    EXPECT_EQ(answered.status, 415) << type;
    EXPECT_EQ(answered.header("Accept"), "application/json, application/msgpack, multipart/form-data");
    EXPECT_EQ(at(body_value(answered), {"statusCode"}), Value{int64_t{415}});
  }
}

TEST_F(Fish, RefusesByName) {
  const std::tuple<std::string, int> refused[] = {
      {R"("chunk_length":99)", 422},
      {R"("chunk_length":1001)", 422},
      {R"("chunk_length":-1)", 422},
      {R"("format":"aiff")", 422},
      {R"("latency":"low")", 422},
      {R"("use_memory_cache":true)", 422},
      {R"("normalize":"x")", 422},
      {R"("streaming":2)", 422},
      {R"("max_new_tokens":-1)", 422},
      {R"("max_new_tokens":1.5)", 422},
      {R"("top_p":0.05)", 422},
      {R"("top_p":1.01)", 422},
      {R"("top_p":1e308)", 422},
      {R"("repetition_penalty":0.8)", 422},
      {R"("repetition_penalty":2.1)", 422},
      {R"("temperature":0)", 422},
      {R"("temperature":1.2)", 422},
      {R"("temperature":[])", 422},
      {R"("references":{})", 422},
      {R"("references":[{"audio":"AAAA"}])", 422},
      {R"("timeout":601)", 422},
      {R"("prosody":{"speed":5})", 422},
      {R"("prosody":{"volume":21})", 422},
      {R"("prosody":{"pitch":1})", 422},
      {R"("prosody":7)", 422},
      {R"("wibble":0)", 422},
  };
  for (const auto& [field, status] : refused) {
    const Answered answered = say(field);
    EXPECT_EQ(answered.status, status) << field << answered.body().substr(0, 200);
    const std::string name = field.substr(1, field.find('"', 1) - 1);
    EXPECT_NE(text_at(body_value(answered), {"message"}).find(name), std::string::npos) << answered.body();
  }
  const Answered voices = say(R"("reference_id":["a","b"])");  // for two speakers, which this model has not
  EXPECT_EQ(voices.status, 400);
  EXPECT_NE(voices.body().find("voices: this model speaks a text in one voice"), std::string::npos)
      << voices.body();
  EXPECT_EQ(bench.ask(json_request("/v1/tts", R"({"format":"wav"})")).status, 422);
  EXPECT_EQ(bench.ask(json_request("/v1/tts", R"({"text":"A fish.","seed":9223372036854775808})")).status,
            422);
  EXPECT_EQ(bench.ask(json_request("/v1/tts", "{")).status, 400);
  EXPECT_EQ(bench.ask(json_request("/v1/tts", R"({"text":" "})")).status, 400);
  EXPECT_EQ(say(R"("prosody":{"speed":1,"volume":0},"format":"pcm")").status, 200);
}

TEST_F(Fish, ProsodyIsSpeedAndDecibels) {
  const auto pcm = [&](const std::string& fields) { return say(R"("format":"pcm",)" + fields).body(); };
  SpeechRequest request = spoken_for_fish(kFishText);
  request.speed = 1.5;
  request.volume = static_cast<float>(std::pow(10, -0.3));
  const std::string want = testing::pcm_of(sound_of(bench.engine(), request));
  EXPECT_TRUE(pcm(R"("prosody":{"speed":1.5,"volume":-6})") == want);
  EXPECT_TRUE(pcm(R"("prosody":{"speed":1.5,"volume":-6},"streaming":true)") == want);
  EXPECT_TRUE(pcm(R"("prosody":{"volume":-6},"speed":1.5)") == want);
  EXPECT_TRUE(pcm(R"("prosody":{"speed":1.5,"volume":-6},"speed":1.5)") == want);
  EXPECT_FALSE(pcm(R"("prosody":{"speed":1.5})") == want);
  const Answered both = say(R"("prosody":{"speed":1.5},"speed":2)");
  EXPECT_EQ(both.status, 422);
  EXPECT_THAT(text_at(body_value(both), {"message"}), ::testing::StartsWith("prosody.speed: "));
  EXPECT_THAT(say(R"("prosody":{"normalize_loudness":true})").header("x-shoal-warnings"),
              ::testing::StartsWith("[\"prosody.normalize_loudness: has no effect"));
}

TEST_F(Fish, FieldsWithoutEffectAreReportedOrRefusedWhenStrict) {
  RouteBench strict(fish_routes, shared_engine(), {.strict = true});
  const std::string usual = say(R"("format":"pcm")").body();
  const std::pair<std::string, std::string> unused[] = {
      {R"("emotion":"happy")", "emotion"},
      {R"("condition_on_previous_chunks":false)", "condition_on_previous_chunks"},
      {R"("min_chunk_length":50)", "min_chunk_length"},
      {R"("early_stop_threshold":0.5)", "early_stop_threshold"},
      {R"("language":"en-us")", "language"},
  };
  for (const auto& [field, name] : unused) {
    SCOPED_TRACE(field);
    const Answered taken = say(R"("format":"pcm",)" + field);
    EXPECT_TRUE(taken.body() == usual);
    EXPECT_THAT(taken.header("x-shoal-warnings"), ::testing::StartsWith("[\"" + name + ": has no effect: "));
    const Answered refused = strict.ask(json_request("/v1/tts", R"({"text":"A fish.",)" + field + "}"));
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(text_at(body_value(refused), {"message"}), ::testing::StartsWith(name + ": "));
  }
}

TEST_F(Fish, UnknownVoicesAre404AndNoPathIsOpened) {
  const Answered unknown = say(R"("reference_id":"nobody")");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(text_at(body_value(say(R"("reference_id":"ana")")), {"message"}),
            R"(voice: there is none called "ana"; the nearest is "anna"; see /v1/audio/voices)");
  EXPECT_EQ(text_at(body_value(say(R"("model":"shoalls")")), {"message"}),
            R"(model: there is none called "shoalls"; the nearest is "shoal"; see /v1/models)");
  EXPECT_EQ(at(body_value(unknown), {"statusCode"}), Value{int64_t{404}});
  EXPECT_EQ(unknown.body().find("shoal_routes_"), std::string::npos) << unknown.body();
  EXPECT_EQ(say(R"("reference_id":"../anna")").status, 400);
  // A short audio is a path to the official server.
  const std::string path = "voice/generation_config.json";
  EXPECT_EQ(say(R"("references":[{"audio":")" + path + R"(","text":"x"}])").status, 422) << "not base64";
  EXPECT_EQ(say(R"("references":[{"audio":")" + to_base64("/etc/hostname") + R"(","text":"x"}])").status,
            400);
}

TEST_F(Fish, AcceptsTheNamesOfTheModelsOwnVoice) {
  const std::string want = testing::pcm_of(sound_of(bench.engine(), spoken_for_fish(kFishText)));
  EXPECT_TRUE(say(R"("format":"pcm","reference_id":"default")").body() == want);
}

// The official server seeds with the magnitude.
TEST_F(Fish, NegativeSeeds) {
  const auto seeded = [&](const char* seed) {
    return bench.ask(json_request(
        "/v1/tts",
        R"({"text":")" + kFishText + R"(","format":"pcm","max_new_tokens":20,"seed":)" + seed + "}"));
  };
  EXPECT_TRUE(seeded("-7").body() == testing::pcm_of(sound_of(bench.engine(), spoken_for_fish(kFishText))));
  EXPECT_EQ(seeded("-9223372036854775808").header("x-shoal-seed"), "9223372036854775808");
  EXPECT_EQ(seeded("-9223372036854775809").status, 422);
}

TEST_F(Fish, ALongTextIs400) {
  ServerConfig config;
  config.max_text_length = 10;
  RouteBench strict(fish_routes, shared_engine(), config);
  const Answered answered = strict.ask(json_request("/v1/tts", R"({"text":"Eleven lett"})"));
  EXPECT_EQ(answered.status, 400);
  EXPECT_NE(text_at(body_value(answered), {"message"}).find("at most 10 characters"), std::string::npos);
}

TEST_F(Fish, AnUnspeakableTextIsAShortSilence) {
  const Answered answered = bench.ask(json_request("/v1/tts", R"({"text":"...","format":"pcm"})"));
  EXPECT_EQ(answered.status, 200) << answered.body();
  EXPECT_EQ(answered.body(), std::string(6400, '\0')) << "0.2 s at 16 kHz";
  EXPECT_NE(answered.header("x-shoal-warnings").find("nothing in it"), std::string::npos);
}

TEST_F(Fish, Health) {
  EXPECT_EQ(bench.ask(get_request("/v1/health")).body(), R"({"status":"ok"})");
  EXPECT_EQ(bench.ask(json_request("/v1/health", "")).body(), R"({"status":"ok"})");
}

}  // namespace
}  // namespace shoal::server
