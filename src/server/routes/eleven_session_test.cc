// ElevenLabs' WebSockets: contexts, flush, close, errors, and what clients may do in any order.
#include <map>
#include <random>

#include "base/base64.h"
#include "server/routes/live_conversation_testing.h"
#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::FakeWebSocket;
using testing::RouteBench;
using testing::shared_engine;
using testing::sound_of;
using testing::text_in;

struct Told {
  std::map<std::string, std::string> sound;  // of each context
  std::map<std::string, int> finals;
  std::vector<std::string> errors;
  std::vector<Value> messages;
  std::optional<uint16_t> closed_with;
};

class ElevenSockets : public ::testing::Test {
 protected:
  using React = std::function<void(const Value& message, FakeWebSocket& socket)>;

  Told talk(bool multi, const std::vector<std::string>& messages, const React& react = {},
            std::vector<std::pair<std::string, std::string>> query = {{"output_format", "pcm_16000"},
                                                                      {"seed", "5"}},
            const std::string& voice = "anna") {
    const std::string path = multi ? "multi-stream-input" : "stream-input";
    const auto table = [&](const ServerConfig& config) {
      std::vector<Route> routes;
      for (Route& route : eleven_routes(config))
        if (route.path.ends_with("/" + path)) routes.push_back(std::move(route));
      return routes;
    };
    RouteBench bench(table, shared_engine());
    bench.services().usage.set_limits({{"", limits_}});
    Request request = testing::get_request("/v1/text-to-speech/" + voice + "/" + path);
    request.query = std::move(query);
    FakeWebSocket socket(request);
    for (const std::string& message : messages) socket.say(message);
    Told told;
    socket.on_sent = [&](const FakeWebSocket::Message& sent) {
      const Value message = read_json(sent.data);
      const std::string id = text_in(message, "contextId");
      if (const Value* audio = message.find("audio"); audio && !audio->is_null())
        told.sound[id] += from_base64(*audio->as<std::string>()).value();
      const Value* final = message.find("isFinal");
      if (final && !final->is_null()) ++told.finals[id];
      if (message.find("error"))
        told.errors.push_back(text_in(message, "error") + " " + text_in(message, "param"));
      told.messages.push_back(message);
      if (react) react(message, socket);
    };
    converse(bench, socket);
    told.closed_with = socket.closed_with;
    return told;
  }
  // What the engine says to a text that is one segment.
  static std::string said(const std::string& text) {
    SpeechRequest request = testing::spoken(text, 5);
    request.max_new_tokens = 1024;
    request.voice = "anna";
    return testing::pcm_of(sound_of(shared_engine(), request));
  }

  KeyLimits limits_{};  // of the client
};

const char* const kFirst = R"({"text":" ","voice_settings":{"speed":1},"xi_api_key":"any"})";

TEST_F(ElevenSockets, AnUtteranceIsSpokenAndTheSocketClosed) {
  const Told told = talk(false, {kFirst, R"({"text":"A sm"})", R"({"text":"all fish. "})", R"({"text":""})"});
  EXPECT_TRUE(told.sound.at("") == said("A small fish."));
  EXPECT_EQ(told.finals.at(""), 1);
  EXPECT_EQ(told.closed_with, 1000);
  EXPECT_TRUE(told.errors.empty());
}

TEST_F(ElevenSockets, ContextsSpeakBesideEachOther) {
  const auto leave = [finals = 0](const Value& message, FakeWebSocket& socket) mutable {
    const Value* final = message.find("isFinal");
    if (final && !final->is_null() && ++finals == 2) socket.say(R"({"close_socket":true})");
  };
  const Told told =
      talk(true,
           {R"({"text":" ","context_id":"a"})", R"({"text":"A fish. ","context_id":"a","flush":true})",
            R"({"text":"A moon. ","context_id":"b","flush":true})",
            R"({"context_id":"a","close_context":true})", R"({"context_id":"b","close_context":true})"},
           leave);
  EXPECT_TRUE(told.sound.at("a") == said("A fish."));
  EXPECT_TRUE(told.sound.at("b") == said("A moon."));
  EXPECT_TRUE(told.finals == (std::map<std::string, int>{{"a", 1}, {"b", 1}}));
  EXPECT_EQ(told.closed_with, 1000);
}

TEST_F(ElevenSockets, AContextThatIsClosedWithoutAFlushFallsSilentAndItsNameIsFree) {
  const Told told =
      talk(true, {R"({"text":"A fish. ","context_id":"a"})", R"({"context_id":"a","close_context":true})",
                  R"({"text":"A moon. ","context_id":"a","flush":true})", R"({"close_socket":true})"});
  EXPECT_EQ(told.finals.at("a"), 2);
  EXPECT_TRUE(told.sound.at("a") == said("A moon."));
  EXPECT_EQ(told.closed_with, 1000);
}

TEST_F(ElevenSockets, WhatIsWrongIsNamed) {
  const Told nobody = talk(true, {}, {}, {}, "nobody");
  EXPECT_EQ(nobody.errors, (std::vector<std::string>{"voice_not_found voice_id"}));
  EXPECT_EQ(nobody.closed_with, 1008);
  EXPECT_EQ(talk(false, {}, {}, {{"enable_ssml_parsing", "true"}}).errors[0],
            "unsupported enable_ssml_parsing");
  EXPECT_EQ(talk(false, {}, {}, {{"output_fromat", "x"}}).errors[0], "invalid_argument output_fromat");
  const Told single = talk(false, {kFirst, R"({"text":"A.","context_id":"a"})"});
  EXPECT_EQ(single.errors, (std::vector<std::string>{"invalid_argument context_id"}));
  EXPECT_EQ(single.closed_with, 1008);
  const Told several =
      talk(true, {"[", R"({"text":"A.","context_id":"a","voice_settings":{"speed":9}})",
                  R"({"text":"A fish.","context_id":"b","flush":true})", R"({"close_socket":true})"});
  EXPECT_EQ(several.errors,
            (std::vector<std::string>{"invalid_argument [0]", "invalid_argument voice_settings.speed"}));
  EXPECT_EQ(text_in(several.messages.at(1), "contextId"), "a");
  EXPECT_EQ(several.finals.at("b"), 1) << "the connection goes on";
}

TEST_F(ElevenSockets, AfterAFailedUtteranceTheConnectionIsClosedAsAfterAnyError) {
  limits_.fill(3);  // requests, and characters that may be spoken
  const Told failed = talk(false, {R"({"text":"A small fish. "})", R"({"text":""})"});
  EXPECT_EQ(failed.errors.size(), 1u);
  EXPECT_EQ(failed.closed_with, 1008);
  const Told context = talk(true, {R"({"text":"A small fish. ","flush":true})", R"({"close_socket":true})"});
  EXPECT_EQ(context.errors.size(), 1u);
  EXPECT_EQ(context.closed_with, 1000) << "a context's error is its own";
}

TEST_F(ElevenSockets, ASilentClientIsLeft) {
  const Told told = talk(true, {}, {}, {{"inactivity_timeout", "1"}});
  EXPECT_EQ(told.errors, (std::vector<std::string>{"deadline_exceeded "}));
  const Told waiting =
      talk(true, {R"({"text":"A fish.","context_id":"a"})"}, {}, {{"inactivity_timeout", "1"}});
  EXPECT_EQ(waiting.finals.at("a"), 1) << "what it said is spoken";
}

TEST_F(ElevenSockets, AnyMessagesInAnyOrderEndEveryContextOnce) {
  const std::string bodies[] = {R"("text":"Hm. ")",
                                R"("text":" ")",
                                R"("text":"")",
                                R"("flush":true)",
                                R"("text":"A.","flush":true)",
                                R"("close_context":true)",
                                R"("text":7)",
                                R"("txet":"a")"};
  std::mt19937 random(9);
  for (int run = 0; run < 25; ++run) {
    std::vector<std::string> messages;
    for (int i = 0; i < 8; ++i)
      messages.push_back(R"({"context_id":")" + std::string(1, static_cast<char>('a' + random() % 2)) +
                         "\"," + bodies[random() % std::size(bodies)] + "}");
    messages.emplace_back(random() % 4 == 0 ? "{" : R"({"text":null})");
    messages.emplace_back(R"({"close_socket":true})");
    const Told told = talk(true, messages);
    EXPECT_EQ(told.closed_with, 1000);
    for (const auto& [id, sound] : told.sound) EXPECT_GE(told.finals.count(id), 1u) << id;
    for (const std::string& error : told.errors) EXPECT_TRUE(error.starts_with("invalid_argument")) << error;
  }
}

}  // namespace
}  // namespace shoal::server
