#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "base/base64.h"
#include "server/routes/openai_speech.h"
#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::at;
using testing::body_value;
using testing::decoded;
using ::testing::HasSubstr;
using testing::json_request;
using testing::RouteBench;
using testing::shared_engine;
using testing::sound_of;
using testing::spoken;
using ::testing::StartsWith;
using testing::text_at;

const std::string kOpenAiText = "One small fish swims.";

class OpenAi : public ::testing::Test {
 protected:
  RouteBench bench{openai_routes, shared_engine()};

  // `fields` follow those that every request needs.
  static Request speech(const std::string& fields, const std::string& text = kOpenAiText) {
    return json_request("/v1/audio/speech", R"({"model":"tts-1","voice":"default","seed":7,"input":")" +
                                                text + '"' + testing::with_length(fields));
  }
  Answered say(const std::string& fields, const std::string& text = kOpenAiText) {
    return bench.ask(speech(fields, text));
  }
  // Bytes of the built-in voice, whose own rate is 16 kHz.
  Answered pcm(const std::string& fields, const std::string& text = kOpenAiText) {
    return say(R"("response_format":"pcm","sample_rate":16000)" + (fields.empty() ? "" : "," + fields), text);
  }
  void expect_refused(const std::string& body, int status, const std::string& param) {
    SCOPED_TRACE(body);
    const Answered answered = bench.ask(json_request("/v1/audio/speech", body));
    EXPECT_EQ(answered.status, status) << answered.body().substr(0, 300);
    if (answered.content_type != "application/json") return;
    EXPECT_EQ(text_at(body_value(answered), {"error", "param"}), param) << answered.body();
  }
};

TEST_F(OpenAi, EveryFormatDecodesToTheEnginesSound) {
  const std::vector<float> sound = sound_of(bench.engine(), spoken(kOpenAiText));
  const std::string want = testing::pcm_of(sound);
  const std::tuple<std::string, const char*> types[] = {{"mp3", "audio/mpeg"}, {"opus", "audio/ogg"},
                                                        {"aac", "audio/aac"},  {"flac", "audio/flac"},
                                                        {"wav", "audio/wav"},  {"pcm", "audio/pcm"}};
  for (const auto& [format, type] : types) {
    SCOPED_TRACE(format);
    const std::string field = R"("response_format":")" + format + '"';
    const Answered stream = say(field), file = say(field + R"(,"stream":false)");
    for (const Answered* answered : {&stream, &file}) {
      EXPECT_EQ(answered->status, 200);
      EXPECT_EQ(answered->content_type, type);
      EXPECT_EQ(answered->header("x-shoal-seed"), "7");
      EXPECT_EQ(answered->header("Content-Disposition"), "attachment; filename=speech." + format);
      EXPECT_TRUE(answered->whole);
    }
    EXPECT_TRUE(stream.streamed);
    EXPECT_FALSE(file.streamed);
    EXPECT_EQ(stream.header("X-Accel-Buffering"), "no");
    EXPECT_EQ(stream.header("Cache-Control"), "no-cache");
    EXPECT_GT(stream.pieces.size(), 1u);
    if (format == "pcm") {
      EXPECT_EQ(stream.header("x-shoal-sample-rate"), "24000");
      EXPECT_TRUE(stream.body() == testing::pcm_at(sound, 16000, 24000));
      EXPECT_TRUE(file.body() == stream.body());
    } else if (format == "wav" || format == "flac") {
      EXPECT_TRUE(decoded(stream.body()) == want);
      EXPECT_TRUE(decoded(file.body()) == want);
      const audio::Format as = audio::parse_format(format).value();
      EXPECT_TRUE(file.body() == testing::as_string(audio::encode(as, {.sample_rate_hz = 16000}, sound)));
    } else if (format != "aac") {
      const std::string bytes = file.body();
      const double seconds = audio::decode_clip(std::as_bytes(std::span(bytes)), "x").seconds();
      EXPECT_NEAR(seconds, static_cast<double>(sound.size()) / 16000, 0.001);
    }
    EXPECT_EQ(file.header("x-shoal-cut-at-frames"), std::to_string(testing::kFrames));
    char length[32];
    std::snprintf(length, sizeof length, "%.3f", static_cast<double>(sound.size()) / 16000);
    EXPECT_EQ(file.header("x-shoal-audio-seconds"), length);
  }
  EXPECT_EQ(say("").content_type, "audio/mpeg");  // the default
}

TEST_F(OpenAi, EveryFieldReachesTheEngine) {
  using Change = std::function<void(SpeechRequest&)>;
  const std::pair<std::string, Change> fields[] = {
      {R"("seed":8)", [](auto& r) { r.seed = 8; }},
      {R"("temperature":0.3)", [](auto& r) { r.temperature = 0.3f; }},
      {R"("top_p":0)", [](auto& r) { r.top_p = 0; }},
      {R"("top_k":3)", [](auto& r) { r.top_k = 3; }},
      {R"("repetition_penalty":2.0)", [](auto& r) { r.repetition_penalty = 2; }},
      {R"("max_new_tokens":5)", [](auto& r) { r.max_new_tokens = 5; }},
      {R"("chunk_length":50)", [](auto& r) { r.chunk_length = 50; }},
      {R"("normalize":false)", [](auto& r) { r.normalise = false; }},
      {R"("special_tokens":true)", [](auto& r) { r.special_tokens = true; }},
      {R"("speed":0.25)", [](auto& r) { r.speed = 0.25; }},
      {R"("speed":1.5)", [](auto& r) { r.speed = 1.5; }},
      {R"("speed":4)", [](auto& r) { r.speed = 4; }},
      {R"("volume_multiplier":0.5)", [](auto& r) { r.volume = 0.5f; }},
  };
  const std::string text =
      "There are 12 fish. They swim <|text|> under a cold and silver moon. Then they sleep.";
  const std::string usual = pcm("", text).body();
  EXPECT_TRUE(usual == testing::pcm_of(sound_of(bench.engine(), spoken(text))));
  for (const auto& [field, change] : fields) {
    SpeechRequest request = spoken(text);
    change(request);
    std::string body = R"({"model":"tts-1","voice":"","input":")" + text +
                       R"(","response_format":"pcm","sample_rate":16000,)" + field;
    if (!field.starts_with(R"("seed)")) body += R"(,"seed":7)";
    if (!field.starts_with(R"("max)")) body += R"(,"max_new_tokens":20)";
    const std::string got = bench.ask(json_request("/v1/audio/speech", body + "}")).body();
    EXPECT_TRUE(got == testing::pcm_of(sound_of(bench.engine(), request))) << field;
    EXPECT_FALSE(got == usual) << field << " changed nothing";
  }
}

TEST_F(OpenAi, WithoutASeedOneIsChosenAndReported) {
  const std::string body =
      R"({"model":"tts-1","voice":"default","response_format":"pcm","input":")" + kOpenAiText + '"';
  const Answered first = bench.ask(json_request("/v1/audio/speech", body + testing::with_length("")));
  const std::string seed = first.header("x-shoal-seed");
  ASSERT_FALSE(seed.empty());
  const Answered again =
      bench.ask(json_request("/v1/audio/speech", body + testing::with_length(R"("seed":)" + seed)));
  EXPECT_TRUE(first.body() == again.body());
}

TEST_F(OpenAi, RefusesByName) {
  const std::string start = R"({"model":"tts-1","voice":"default","input":"A fish.",)";
  const std::tuple<std::string, int, std::string> refused[] = {
      {R"("speed":4.1)", 400, "speed"},
      {R"("speed":0.1)", 400, "speed"},
      {R"("speed":"fast")", 400, "speed"},
      {R"("response_format":"m4a")", 400, "response_format"},
      {R"("stream_format":"xml")", 400, "stream_format"},
      {R"("stream_format":"sse","stream":false)", 400, "stream"},
      {R"("seed":-1)", 400, "seed"},
      {R"("seed":1.5)", 400, "seed"},
      {R"("temperature":1e308)", 400, "temperature"},
      {R"("temperature":-0.1)", 400, "temperature"},
      {R"("top_p":1.1)", 400, "top_p"},
      {R"("top_k":-1)", 400, "top_k"},
      {R"("top_k":3000000000)", 400, "top_k"},
      {R"("repetition_penalty":0)", 400, "repetition_penalty"},
      {R"("max_new_tokens":-1)", 400, "max_new_tokens"},
      {R"("max_new_tokens":9223372036854775807)", 400, "max_new_tokens"},
      {R"("chunk_length":10)", 400, "chunk_length"},
      {R"("chunk_length":1001)", 400, "chunk_length"},
      {R"("normalize":"perhaps")", 400, "normalize"},
      {R"("timeout":0)", 400, "timeout"},
      {R"("timeout":601)", 400, "timeout"},
      {R"("sample_rate":7999)", 400, "sample_rate"},
      {R"("sample_rate":44101)", 400, "sample_rate"},  // mp3 cannot carry it
      {R"("references":[{"audio":"!!","text":"x"}])", 400, "references[0].audio"},
      {R"("references":[{"text":"x"}])", 400, "references[0].audio"},
      {R"("references":"x")", 400, "references"},
      {R"("ssml":true)", 400, "input"},  // which is no XML
      {R"("volume_multiplier":11)", 400, "volume_multiplier"},
      {R"("wibble":1)", 400, "wibble"},
      {R"("model":"tts-1")", 400, "model"},  // twice
  };
  for (const auto& [field, status, param] : refused) expect_refused(start + field + "}", status, param);
  expect_refused(R"({"voice":"default","input":"A fish."})", 400, "model");
  expect_refused(R"({"model":"tts-1","input":"A fish."})", 400, "voice");
  expect_refused(R"({"model":"tts-1","voice":"default"})", 400, "input");
  expect_refused(R"({"model":"tts-1","voice":"default","input":""})", 400, "input");
  expect_refused(R"({"model":"tts-1","voice":"default","input":"  "})", 400, "input");
  expect_refused(R"({"model":"tts-1","voice":"default","input":7})", 400, "input");
  expect_refused(R"({"model":"gpt-9","voice":"default","input":"A fish."})", 404, "model");
  expect_refused("[]", 400, "(null)");
  expect_refused("{", 400, "(null)");
}

TEST_F(OpenAi, SpeedChangesTheLengthAndStreamsEqualFiles) {
  const auto samples = [&](const std::string& field) {
    const std::string stream = pcm(field).body();
    EXPECT_TRUE(pcm(field + R"(,"stream":false)").body() == stream) << field;
    return static_cast<double>(stream.size()) / 2;
  };
  const double usual = samples(R"("speed":1)");
  for (const double speed : {0.5, 2.0})
    EXPECT_NEAR(samples(R"("speed":)" + std::to_string(speed)), usual / speed, 0.031 * 16000) << speed;
  const Answered file = pcm(R"("speed":2,"stream":false)");
  EXPECT_NEAR(std::stod(file.header("x-shoal-audio-seconds")),
              static_cast<double>(file.body().size()) / 32000, 0.001);
  EXPECT_EQ(file.header("x-shoal-warnings"), "");
}

TEST_F(OpenAi, ATextInAnUnknownScriptIsReportedOrRefusedWhenStrict) {
  RouteBench strict(openai_routes, shared_engine(), {.strict = true});
  const std::string russian = "Привет, как дела?";
  EXPECT_THAT(say("", russian).header("x-shoal-warnings"),
              StartsWith("[\"text: most of its letters are Cyrillic, but the model has learned only en"));
  EXPECT_EQ(say("", "Say Привет to all of them.").header("x-shoal-warnings"), "");
  const Answered refused = strict.ask(speech("", russian));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(text_at(body_value(refused), {"error", "param"}), "input");
  EXPECT_THAT(text_at(body_value(refused), {"error", "message"}), HasSubstr("Cyrillic"));
}

TEST_F(OpenAi, FieldsWithoutEffectAreReportedOrRefusedWhenStrict) {
  RouteBench strict(openai_routes, shared_engine(), {.strict = true});
  const std::string usual = pcm("").body();
  const std::pair<std::string, std::string> unused[] = {
      {R"("instructions":"whisper")", "instructions"},
      {R"("lang_code":"a")", "lang_code"},
      {R"("strict_phonemes":true)", "strict_phonemes"},
      {R"("return_timing":true)", "return_timing"},
      {R"("return_download_link":true)", "return_download_link"},
      {R"("download_format":"mp3")", "download_format"},
      {R"("voice_aliases":{"a":"b"})", "voice_aliases"},
      {R"("normalization_options":{"url_normalization":false})", "normalization_options.url_normalization"},
  };
  for (const auto& [field, name] : unused) {
    SCOPED_TRACE(field);
    const Answered taken = pcm(field);
    EXPECT_TRUE(taken.body() == usual);
    const std::string told = name == "lang_code" ? "language" : name;
    EXPECT_THAT(taken.header("x-shoal-warnings"), StartsWith("[\"" + told + ": has no effect: "));
    const Answered refused = strict.ask(speech(field));
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(text_at(body_value(refused), {"error", "param"}), name);
  }
  EXPECT_THAT(say(R"("instructions":"whisper","stream_format":"sse")").body(),
              HasSubstr(R"("warnings":["instructions: )"));
  EXPECT_EQ(strict.ask(speech("")).status, 200);
  EXPECT_EQ(pcm("").header("x-shoal-warnings"), "");
}

TEST_F(OpenAi, AcceptsNeutralValuesOfUnsupportedFields) {
  const Answered answered =
      say(R"("response_format":"pcm","speed":1.0,"instructions":"","ssml":false,"volume_multiplier":1,)"
          R"("lang_code":null,"normalization_options":{},"stream_format":"audio","references":[])");
  EXPECT_EQ(answered.status, 200) << answered.body().substr(0, 300);
  EXPECT_TRUE(answered.body() == say(R"("response_format":"pcm")").body());
}

TEST_F(OpenAi, AcceptsAVoiceAsNameOrObject) {
  const auto with_voice = [&](const std::string& voice) {
    return bench.ask(
        json_request("/v1/audio/speech", R"({"model":"shoal","input":"A fish.","seed":3,"max_new_tokens":20,)"
                                         R"("response_format":"pcm","sample_rate":16000,)"
                                         R"("voice":)" +
                                             voice + "}"));
  };
  const std::string own = testing::pcm_of(sound_of(bench.engine(), spoken("A fish.", 3)));
  for (const char* voice : {R"("default")", R"("built-in")", R"("")", R"({"id":"default"})"})
    EXPECT_TRUE(with_voice(voice).body() == own) << voice;
  SpeechRequest light = spoken("A fish.", 3);
  light.voice = "nora";
  const std::string nora = testing::pcm_of(sound_of(bench.engine(), light));
  EXPECT_FALSE(nora == own);
  for (const char* voice : {R"("nova")", R"({"id":"nova"})", R"("nora")"})  // OpenAI's name for it
    EXPECT_TRUE(with_voice(voice).body() == nora) << voice;
  for (const char* voice : {"anna", "alloy"}) {  // folders; the second hides a name of OpenAI's
    SpeechRequest request = spoken("A fish.", 3);
    request.voice = voice;
    const std::string want = testing::pcm_of(sound_of(bench.engine(), request));
    EXPECT_FALSE(want == own);
    EXPECT_TRUE(with_voice('"' + std::string(voice) + '"').body() == want);
    EXPECT_TRUE(with_voice(R"({"id":")" + std::string(voice) + R"("})").body() == want);
  }
  for (const char* voice :
       {R"("nobody")", R"("../anna")", R"("/etc/passwd")", R"({"id":"nobody"})", R"("a\u0000b")"}) {
    const Answered answered = with_voice(voice);
    EXPECT_EQ(answered.status, 400) << voice;
    EXPECT_EQ(text_at(body_value(answered), {"error", "param"}), "voice") << answered.body();
    EXPECT_EQ(answered.body().find("shoal_routes_"), std::string::npos) << "a path: " << answered.body();
  }
  EXPECT_EQ(text_at(body_value(with_voice(R"("clra")")), {"error", "message"}),
            R"(voice: there is none called "clra"; the nearest is "clara"; see /v1/audio/voices)");
  EXPECT_EQ(text_at(body_value(with_voice(R"({"name":"anna"})")), {"error", "param"}), "voice.name");
  EXPECT_EQ(text_at(body_value(with_voice("[]")), {"error", "param"}), "voice");
}

TEST_F(OpenAi, FollowsInlineReferences) {
  const std::string clip = testing::noise_wav(0.5, 1);
  SpeechRequest request = spoken(kOpenAiText);
  request.references = {{.audio = clip, .text = "some words"}};
  const std::string want = testing::pcm_of(sound_of(bench.engine(), request));
  const std::string field = R"("references":[{"audio":")" + to_base64(clip) + R"(","text":"some words"}])";
  EXPECT_TRUE(pcm(field).body() == want);
  const Answered both = bench.ask(json_request(
      "/v1/audio/speech", R"({"model":"tts-1","voice":"anna","input":"A fish.",)" + field + "}"));
  EXPECT_EQ(both.status, 400);
  EXPECT_EQ(text_at(body_value(both), {"error", "param"}), "voice");
  const std::string junk =
      R"("references":[{"audio":")" + to_base64("not a sound at all") + R"(","text":"x"}])";
  EXPECT_EQ(pcm(junk).status, 400);
}

TEST_F(OpenAi, AcceptsOnlyJson) {
  for (const char* type : {"text/plain", "application/msgpack", "multipart/form-data; boundary=x", ""}) {
    Request request = speech("");
    request.headers = {{"Content-Type", type}};
    EXPECT_EQ(bench.ask(request).status, 415) << type;
  }
  Request request = speech(R"("response_format":"pcm")");
  request.headers = {{"content-type", "Application/JSON; charset=utf-8"}};
  EXPECT_EQ(bench.ask(request).status, 200);
}

// The JSON of each "data:" line; no other lines are allowed.
std::vector<Value> events_of(const std::string& body) {
  std::vector<Value> events;
  std::istringstream lines(body);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    EXPECT_TRUE(line.starts_with("data: ")) << line.substr(0, 80);
    events.push_back(read_json(line.substr(6)));
  }
  return events;
}

TEST_F(OpenAi, EventsCarryTheSameSound) {
  for (const std::string format : {"pcm", "mp3", "wav"}) {
    const std::string field = R"("response_format":")" + format + '"';
    const Answered answered = say(field + R"(,"stream_format":"sse")");
    EXPECT_EQ(answered.status, 200);
    EXPECT_EQ(answered.content_type, "text/event-stream");
    EXPECT_TRUE(answered.whole);
    std::vector<Value> events = events_of(answered.body());
    ASSERT_GT(events.size(), 2u);
    const Value done = events.back();
    events.pop_back();
    std::string sound;
    for (const Value& event : events) {
      EXPECT_EQ(text_at(event, {"type"}), "speech.audio.delta");
      sound += from_base64(text_at(event, {"audio"})).value();
    }
    EXPECT_TRUE(sound == say(field).body()) << format;
    EXPECT_EQ(text_at(done, {"type"}), "speech.audio.done");
    Speech direct = bench.engine().submit(spoken(kOpenAiText));
    direct.read_all();
    const SpeechSummary summary = direct.summary();
    EXPECT_EQ(at(done, {"usage", "input_tokens"}), Value{summary.prompt_columns});
    EXPECT_EQ(at(done, {"usage", "output_tokens"}), Value{summary.frames});
    EXPECT_EQ(at(done, {"usage", "total_tokens"}), Value{summary.prompt_columns + summary.frames});
  }
}

TEST_F(OpenAi, OpenAisVoiceNamesAreAcceptedBesideReferences) {
  const std::string clip = testing::noise_wav(0.5, 1);
  const std::string field = R"("references":[{"audio":")" + to_base64(clip) + R"(","text":"some words"}])";
  const Answered answered = bench.ask(json_request(
      "/v1/audio/speech",
      R"({"model":"tts-1","voice":"nova","input":"A fish.","max_new_tokens":20,)" + field + "}"));
  EXPECT_EQ(answered.status, 200) << answered.body().substr(0, 300);
}

TEST_F(OpenAi, TheTableDescribesEveryField) {
  const Route& route = bench.routes().front();
  EXPECT_TRUE(route.takes_slot);
  EXPECT_EQ(route.errors, ErrorStyle::openai);
  std::vector<std::string> required;
  for (const FieldDoc& field : route.doc.body) {
    EXPECT_FALSE(field.help.empty()) << field.name;
    if (field.required) required.push_back(field.name);
  }
  EXPECT_EQ(required,
            (std::vector<std::string>{"input"}));  // the others may be left out of Kokoro's requests
}

}  // namespace
}  // namespace shoal::server
