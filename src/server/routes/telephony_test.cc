// Sound for telephones and at other rates, on every route that speaks: a stream has the bytes of the whole.
#include "base/base64.h"
#include "server/routes/live_conversation_testing.h"
#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::json_request;
using testing::LiveRoutes;
using testing::RouteBench;
using testing::shared_engine;
using testing::sound_of;

const std::string kCall = "One small fish swims.";
constexpr int kVoiceHz = 16000;  // of the built-in voice
constexpr int kListenersHz[] = {8000, 16000, 22050, 24000, 44100, 48000};

// The expected bytes: all samples resampled at once and encoded at once.
std::string coded(const std::vector<float>& samples, const std::string& format, int to_hz) {
  std::vector<float> resampled = samples;
  if (to_hz != kVoiceHz) {
    resampled.clear();
    audio::StreamResampler resampler(kVoiceHz, to_hz);
    resampler.push(samples, resampled);
    resampler.finish(resampled);
  }
  return testing::as_string(
      audio::encode(audio::parse_format(format).value(), {.sample_rate_hz = to_hz}, resampled));
}

// A format, and what to ask for besides it; 0: nothing.
struct Listener {
  std::string format;
  int asked_hz, heard_hz;

  std::string fields(const std::string& format_field) const {
    std::string all = "\"" + format_field + "\":\"" + format + '"';
    if (asked_hz > 0) all += ",\"sample_rate\":" + std::to_string(asked_hz);
    return all;
  }
};

std::vector<Listener> listeners() {
  std::vector<Listener> all = {{"ulaw", 0, 8000}, {"alaw", 0, 8000}, {"ulaw", 8000, 8000}};
  for (const int hz : kListenersHz) all.push_back({"pcm", hz, hz});
  return all;
}

void expect_stream_and_whole(const Answered& stream, const Answered& whole, const std::string& want,
                             const Listener& listener) {
  EXPECT_TRUE(stream.streamed && !whole.streamed);
  EXPECT_TRUE(whole.body() == want) << whole.body().substr(0, 300);
  EXPECT_TRUE(stream.body() == want) << stream.body().substr(0, 300);
  EXPECT_EQ(stream.header("x-shoal-sample-rate"), std::to_string(listener.heard_hz));
  EXPECT_TRUE(listener.format == "pcm" ||
              stream.content_type == mime_type(*audio::parse_format(listener.format)));
}

TEST(Telephony, OpenAisRouteSpeaksIt) {
  RouteBench bench(openai_routes, shared_engine());
  const std::vector<float> sound = sound_of(bench.engine(), testing::spoken(kCall));
  for (const Listener& listener : listeners()) {
    SCOPED_TRACE(listener.fields("response_format"));
    const std::string body = R"({"model":"tts-1","voice":"default","seed":7,"input":")" + kCall + "\"";
    const std::string fields = listener.fields("response_format");
    const Answered stream = bench.ask(json_request("/v1/audio/speech", body + testing::with_length(fields)));
    const Answered whole = bench.ask(
        json_request("/v1/audio/speech", body + testing::with_length(fields + ",\"stream\":false")));
    expect_stream_and_whole(stream, whole, coded(sound, listener.format, listener.heard_hz), listener);
  }
}

TEST(Telephony, FishsRouteSpeaksIt) {
  RouteBench bench(fish_routes, shared_engine());
  const std::vector<float> sound = sound_of(bench.engine(), testing::spoken_for_fish(kCall));
  for (const Listener& listener : listeners()) {
    SCOPED_TRACE(listener.fields("format"));
    const std::string body = "{\"seed\":7,\"text\":\"" + kCall + "\"", fields = listener.fields("format");
    const Answered whole = bench.ask(json_request("/v1/tts", body + testing::with_length(fields)));
    const Answered stream =
        bench.ask(json_request("/v1/tts", body + testing::with_length(fields + ",\"streaming\":true")));
    expect_stream_and_whole(stream, whole, coded(sound, listener.format, listener.heard_hz), listener);
  }
}

TEST(Telephony, ABatchSpeaksIt) {
  RouteBench bench(batch_routes, shared_engine());
  const std::vector<float> sound = sound_of(bench.engine(), testing::spoken_for_fish(kCall));
  for (const Listener& listener : listeners()) {
    SCOPED_TRACE(listener.fields("format"));
    const Answered answered =
        bench.ask(json_request("/v1/tts/batch", "{\"items\":[{\"seed\":7,\"text\":\"" + kCall + "\"}]" +
                                                    testing::with_length(listener.fields("format"))));
    ASSERT_EQ(answered.status, 200) << answered.body();
    const Value body = testing::body_value(answered);
    const Value& item = (*body.find("results")->as<Value::Array>())[0];
    EXPECT_EQ(testing::number_of(item, "sample_rate"), listener.heard_hz);
    EXPECT_TRUE(from_base64(testing::text_in(item, "audio_base64")) ==
                coded(sound, listener.format, listener.heard_hz));
  }
}

TEST(Telephony, RatesThatAFormatCannotCarryAreRefused) {
  const std::tuple<RouteBench::Table, const char*, std::string> routes[] = {
      {openai_routes, "/v1/audio/speech",
       R"({"model":"tts-1","voice":"default","input":"A fish.","response_format":"ulaw","sample_rate":16000})"},
      {fish_routes, "/v1/tts", R"({"text":"A fish.","format":"alaw","sample_rate":16000})"},
      {batch_routes, "/v1/tts/batch",
       R"({"items":[{"text":"A fish."}],"format":"ulaw","sample_rate":16000})"}};
  for (const auto& [table, path, body] : routes) {
    RouteBench bench(table, shared_engine());
    const Answered answered = bench.ask(json_request(path, body));
    EXPECT_EQ(answered.status, 400) << path;
    EXPECT_NE(answered.body().find("expected 8000 Hz, got 16000"), std::string::npos) << answered.body();
  }
}

TEST_F(LiveRoutes, SpeakForTelephonesAndAtOtherRates) {
  const std::vector<float> sound = engine_->submit(request("A small fish.", 5)).read_all();
  for (const Listener& listener : listeners()) {
    SCOPED_TRACE(listener.fields("format"));
    const testing::Heard heard = talk({R"({"type":"start","seed":5,"max_new_tokens":12,"normalize":false,)" +
                                           listener.fields("format") + "}",
                                       testing::piece("A small fish."), testing::kEnd});
    EXPECT_EQ(testing::number_of(*heard.of("started").at(0), "sample_rate"), listener.heard_hz);
    EXPECT_TRUE(heard.sound == std::vector<std::string>{coded(sound, listener.format, listener.heard_hz)});
  }
}

}  // namespace
}  // namespace shoal::server
