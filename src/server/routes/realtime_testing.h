// Conversations of OpenAI's Realtime API with the built-in voice, as a client has them.
#pragma once

#include <map>

#include "base/base64.h"
#include "server/routes/live_conversation_testing.h"
#include "server/routes/speech_testing.h"

namespace shoal::server::testing {

inline const Value& inside(const Value& value, const std::string& name) {
  static const Value nothing;
  const Value* found = value.find(name);
  return found ? *found : nothing;
}

struct Spoken {
  std::vector<Value> events;
  std::map<std::string, std::string> sound;  // of each response
  std::optional<uint16_t> closed_with;

  std::vector<std::string> types() const {
    std::vector<std::string> all;
    for (const Value& event : events) {
      const std::string type = text_in(event, "type");
      if (all.empty() || all.back() != type) all.push_back(type);
    }
    return all;
  }
  std::vector<const Value*> of(const std::string& type) const {
    std::vector<const Value*> found;
    for (const Value& event : events)
      if (text_in(event, "type") == type) found.push_back(&event);
    return found;
  }
  std::vector<std::string> errors() const {  // "code param"
    std::vector<std::string> all;
    for (const Value* event : of("error")) {
      const Value& error = inside(*event, "error");
      all.push_back(text_in(error, "code") + " " + text_in(error, "param"));
    }
    return all;
  }
  std::vector<std::string> outcomes() const {
    std::vector<std::string> all;
    for (const Value* event : of("response.done"))
      all.push_back(text_in(inside(*event, "response"), "status"));
    return all;
  }
};

class RealtimeSockets : public ::testing::Test {
 protected:
  using React = std::function<void(const Value& event, FakeWebSocket& socket)>;

  // Says `events` at once and then reacts; hangs up after `dones` responses.
  static Spoken talk(const std::vector<std::string>& events, size_t dones = 1, const React& react = {},
                     Request request = get_request("/v1/realtime"), ServerConfig config = {}) {
    RouteBench bench(realtime_routes, shared_engine(), std::move(config));
    if (request.query.empty()) request.query = {{"model", "gpt-realtime"}};
    FakeWebSocket socket(request);
    for (const std::string& event : events) socket.say(event);
    if (dones == 0 && !react) socket.hang_up();
    Spoken spoken;
    socket.on_sent = [&](const FakeWebSocket::Message& sent) {
      spoken.events.push_back(read_json(sent.data));
      const Value& event = spoken.events.back();
      const std::string type = text_in(event, "type");
      if (type.ends_with("audio.delta"))
        spoken.sound[text_in(event, "response_id")] += from_base64(text_in(event, "delta")).value();
      if (react) react(event, socket);
      if (type == "response.done" && dones > 0 && spoken.of(type).size() == dones) socket.hang_up();
    };
    converse(bench, socket);
    spoken.closed_with = socket.closed_with;
    return spoken;
  }
  static std::string said(const std::string& text, uint64_t seed = 5) {
    SpeechRequest request = spoken(text, seed);
    request.max_new_tokens = 1024;
    request.voice = "anna";
    return pcm_at(sound_of(shared_engine(), request), shared_engine().sample_rate_hz(), 24000);
  }
};

inline const char* const kAnna =
    R"({"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":"anna"}},"seed":5}})";
inline const char* const kRespond = R"({"type":"response.create"})";

inline std::string user_says(const std::string& text, const std::string& id = "") {
  const std::string named = id.empty() ? "" : R"("id":")" + id + "\",";
  return R"({"type":"conversation.item.create","item":{)" + named +
         R"("type":"message","role":"user","content":[{"type":"input_text","text":)" + write_json({text}) +
         "}]}}";
}

}  // namespace shoal::server::testing
