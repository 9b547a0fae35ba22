// Conversations over the WebSocket of live text, as clients have them, for the tests of its route.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "audio/encoder.h"
#include "server/body/value.h"
#include "server/routes/live_testing.h"

namespace shoal::server::testing {

using Message = WebSocket::Message;

inline std::string text_in(const Value& message, std::string_view name) {
  const Value* member = message.find(name);
  const std::string* text = member ? member->as<std::string>() : nullptr;
  return text ? *text : "";
}
inline double number_of(const Value& message, std::string_view name) {
  const Value* member = message.find(name);
  if (!member) return -1;
  if (const auto* integer = member->as<int64_t>()) return static_cast<double>(*integer);
  return member->as<double>() ? *member->as<double>() : -1;
}

// A conversation as a client sees it.
struct Heard {
  std::vector<Value> messages;     // of text, in order
  std::vector<std::string> kinds;  // of all, in order; "sound" for binary, runs of it as one
  std::vector<std::string> sound;  // of each utterance, joined
  std::optional<uint16_t> closed_with;
  std::optional<Error> thrown;

  std::vector<const Value*> of(const std::string& type) const {
    std::vector<const Value*> found;
    for (const Value& message : messages) {
      if (text_in(message, "type") == type) found.push_back(&message);
    }
    return found;
  }
  std::string spoken() const {
    std::string all;
    for (const Value* segment : of("segment")) all += text_in(*segment, "text");
    return all;
  }
  std::vector<std::string> outcomes() const {
    std::vector<std::string> all;
    for (const Value* done : of("done")) all.push_back(text_in(*done, "outcome"));
    return all;
  }
  std::vector<std::string> codes() const {
    std::vector<std::string> all;
    for (const Value* error : of("error")) all.push_back(text_in(*error, "code"));
    return all;
  }
};

// Conversations with the built-in voice.
class LiveRoutes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    EngineConfig config = built_in_config();
    config.max_queue = 64;
    engine_ = new Engine(config);
    engine_->start();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }
  void TearDown() override {  // no conversation is left
    for (int i = 0; i < 2000 && open_requests() > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(open_requests(), 0);
  }
  static int64_t open_requests() {
    const Statistics of = engine_->statistics();
    return of.preparing + of.waiting + of.running + of.paused + of.finishing;
  }

  // Called when the server has sent something: `type`, or "sound".
  using React = std::function<void(const std::string& type, FakeWebSocket& socket)>;

  // Says `messages` at once and then reacts; hangs up after `dones` utterances, or not at all by itself.
  Heard talk(const std::vector<std::string>& messages, size_t dones = 1, const React& react = {},
             ServerConfig config = {}, std::chrono::milliseconds write_takes = {}) {
    RouteBench bench(live_routes, *engine_, std::move(config));
    FakeWebSocket socket(get_request("/v1/audio/stream"));
    socket.write_takes = write_takes;
    for (const std::string& message : messages) socket.say(message);
    Heard heard;
    bench_ = &bench;
    socket.on_sent = [&](const Message& message) {
      std::string kind = "sound";
      if (message.text) {
        heard.messages.push_back(read_json(message.data));
        kind = text_in(heard.messages.back(), "type");
      }
      if (kind == "started") heard.sound.emplace_back();
      if (kind == "sound") heard.sound.back() += message.data;
      if (kind != "sound" || heard.kinds.empty() || heard.kinds.back() != kind) heard.kinds.push_back(kind);
      if (react) react(kind, socket);
      if (kind == "done" && heard.of("done").size() == dones) socket.hang_up();
    };
    heard.thrown = converse(bench, socket);
    heard.closed_with = socket.closed_with;
    bench_ = nullptr;
    return heard;
  }

  static SpeechRequest request(std::string text, uint64_t seed, int64_t frames = 12) {
    SpeechRequest request;
    request.text = std::move(text);
    request.seed = seed;
    request.max_new_tokens = frames;
    request.normalise = false;
    return request;
  }
  static std::string pcm(const std::vector<float>& samples) {
    const std::vector<std::byte> bytes =
        audio::encode(audio::Format::pcm_s16le, {.sample_rate_hz = engine_->sample_rate_hz()}, samples);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::string said(const SpeechRequest& request) { return pcm(engine_->submit(request).read_all()); }

  inline static Engine* engine_ = nullptr;
  RouteBench* bench_ = nullptr;  // of the conversation that runs
};

inline constexpr const char* kStart =
    R"({"type":"start","id":"a","seed":5,"max_new_tokens":12,"normalize":false})";
inline constexpr const char* kEnd = R"({"type":"end"})";

inline constexpr const char* kThreeSentences =
    "One small fish swims under a cold and blue moon. Two small fish swim under a cold and red moon. And all "
    "the others sleep below.";

inline std::string piece(const std::string& text) {
  return write_json({Value::Object{{"type", {std::string("text")}}, {"text", {text}}}});
}

}  // namespace shoal::server::testing
