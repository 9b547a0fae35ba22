// Fish Audio's WebSocket: text in pieces, sound, one finish, and what clients may do in any order.
#include <random>

#include "server/routes/fish_live.h"
#include "server/routes/live_conversation_testing.h"
#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::FakeWebSocket;
using testing::number_of;
using testing::RouteBench;
using testing::shared_engine;
using testing::sound_of;
using testing::text_in;
using Packed = std::vector<std::pair<std::string, Value>>;

std::string packed(Packed members) { return write_msgpack({Value::Object(std::move(members))}); }
std::string event_of(const std::string& name) { return packed({{"event", {name}}}); }
std::string text_event(const std::string& text) {
  return packed({{"event", {std::string("text")}}, {"text", {text}}});
}
std::string broken_text() {  // not UTF-8
  std::string message = text_event("?");
  message[message.find('?')] = '\xff';
  return message;
}
std::string start_event(const std::string& fields) {
  return packed({{"event", {std::string("start")}}, {"request", read_json("{" + fields + "}")}});
}
const std::string kPcmOfAnna =
    R"("text":"","format":"pcm","seed":5,"reference_id":"anna","max_new_tokens":20)";

struct ToldByFish {
  std::string sound;
  size_t pieces = 0;
  std::vector<Value> finishes;
  std::optional<uint16_t> closed_with;
  std::vector<std::chrono::steady_clock::time_point> times;
};

class FishSockets : public ::testing::Test {
 protected:
  using Say = std::function<void(FakeWebSocket& socket)>;

  ToldByFish talk(const std::vector<std::string>& messages, const Headers& headers = {{"model", "s1"}},
                  ServerConfig config = {}, const Say& on_sound = {}) {
    RouteBench bench(fish_live_routes, shared_engine(), std::move(config));
    Request request = testing::get_request("/v1/tts/live");
    for (const auto& [name, value] : headers) request.headers.add(name, value);
    FakeWebSocket socket(request);
    for (const std::string& message : messages) socket.say({.text = false, .data = message});
    ToldByFish told;
    socket.on_sent = [&](const FakeWebSocket::Message& sent) {
      EXPECT_FALSE(sent.text);
      const Value message = read_msgpack(sent.data);
      EXPECT_TRUE(told.finishes.empty()) << "the finish is the last";
      told.times.push_back(std::chrono::steady_clock::now());
      if (text_in(message, "event") == "finish") {
        told.finishes.push_back(message);
        return;
      }
      EXPECT_EQ(text_in(message, "event"), "audio");
      told.sound += message.find("audio")->as<Bytes>()->data;
      if (++told.pieces == 1 && on_sound) on_sound(socket);
    };
    converse(bench, socket);
    told.closed_with = socket.closed_with;
    EXPECT_EQ(told.finishes.size(), 1u);
    return told;
  }
  static std::string reason(const ToldByFish& told) {
    return told.finishes.empty() ? "none" : text_in(told.finishes[0], "reason");
  }
  // The refusal's code, field, and code of the close.
  static std::string refusal(const ToldByFish& told) {
    EXPECT_EQ(reason(told), "error");
    const Value& finish = told.finishes.at(0);
    EXPECT_NE(text_in(finish, "message"), "");
    return text_in(finish, "code") + " " + text_in(finish, "param") + " " +
           std::to_string(told.closed_with.value_or(0));
  }
  static std::string said(const std::string& text) {
    SpeechRequest request = testing::spoken(text, 5);
    request.voice = "anna";
    request.temperature = 0.8f;
    request.top_p = 0.8f;
    request.repetition_penalty = 1.1f;
    return testing::pcm_of(sound_of(shared_engine(), request));
  }
};

TEST_F(FishSockets, TextInPiecesIsSpokenAsV1TtsSpeaksIt) {
  const std::string whole = said("A small fish.");
  const ToldByFish told =
      talk({start_event(kPcmOfAnna), text_event("A sm"), text_event("all fish. "), event_of("stop")});
  EXPECT_TRUE(told.sound == whole);
  EXPECT_EQ(reason(told), "stop");
  EXPECT_EQ(told.closed_with, 1000);
  EXPECT_EQ(number_of(told.finishes[0], "seed"), 5);
  const std::string with_text =
      R"("text":"A small fish.",)" + kPcmOfAnna.substr(std::string(R"("text":"",)").size());
  EXPECT_TRUE(talk({start_event(with_text), event_of("stop")}).sound == whole);
  const std::string nulls = kPcmOfAnna.substr(std::string(R"("text":"",)").size()) +
                            R"(,"prosody":null,"model_id":null,"opus_bitrate":null)";
  EXPECT_TRUE(talk({start_event(nulls), text_event("A small fish."), event_of("stop")}).sound == whole)
      << "as fish-audio-sdk leaves fields out";
}

TEST_F(FishSockets, AFlushSpeaksBeforeTheTextEnds) {
  const auto end = [](FakeWebSocket& socket) { socket.say({.text = false, .data = event_of("stop")}); };
  const ToldByFish told =
      talk({start_event(kPcmOfAnna), text_event("A fish"), event_of("flush")}, {}, {}, end);
  EXPECT_EQ(reason(told), "stop");
  EXPECT_TRUE(told.sound == said("A fish"));
}

TEST_F(FishSockets, SoundIsMp3UnlessItSaysOtherwise) {
  const auto first_bytes = [&](const std::string& format) {
    const std::string fields = format.empty() ? R"("seed":5)" : R"("seed":5,"format":")" + format + '"';
    return talk({start_event(fields + R"(,"max_new_tokens":20)"), text_event("A fish."), event_of("stop")})
        .sound.substr(0, 4);
  };
  EXPECT_EQ(first_bytes("")[0], '\xFF');
  EXPECT_EQ(first_bytes("wav"), "RIFF");
  EXPECT_EQ(first_bytes("opus"), "OggS");
}

TEST_F(FishSockets, NoTextIsNoSoundAndNoError) {
  const ToldByFish told = talk({start_event(kPcmOfAnna), event_of("stop")});
  EXPECT_EQ(told.sound, "");
  EXPECT_EQ(reason(told), "stop");
}

TEST_F(FishSockets, MessagesKeepTheirDistanceForTheSdkThatLosesThem) {
  const ToldByFish told =
      talk({start_event(kPcmOfAnna), text_event("A fish. "), event_of("stop")}, {{"developer-id", "1"}});
  ASSERT_GE(told.times.size(), 2u);
  for (size_t i = 1; i < told.times.size(); ++i)
    EXPECT_GE(told.times[i] - told.times[i - 1], std::chrono::milliseconds(20)) << i;
}

TEST_F(FishSockets, WhatIsWrongIsNamedAndTheConnectionClosed) {
  EXPECT_EQ(refusal(talk({text_event("A.")})), "invalid_argument event 1008");
  EXPECT_EQ(refusal(talk({"\xc1"})), "invalid_argument  1008");
  EXPECT_EQ(refusal(talk({event_of("begin")})), "invalid_argument event 1008");
  EXPECT_EQ(refusal(talk({packed({{"text", {std::string("A.")}}})})), "invalid_argument event 1008");
  EXPECT_EQ(refusal(talk({packed({{"event", {std::string("start")}}})})), "invalid_argument request 1008");
  EXPECT_EQ(refusal(talk({start_event(R"("fromat":"pcm")")})), "invalid_argument request.fromat 1008");
  EXPECT_EQ(refusal(talk({start_event(R"("format":"mp4")")})), "invalid_argument request.format 1008");
  EXPECT_EQ(refusal(talk({start_event(R"("mp3_bitrate":65)")})), "invalid_argument mp3_bitrate 1008");
  EXPECT_EQ(refusal(talk({start_event(R"("reference_id":"nobody")")})), "not_found voice 1008");
  EXPECT_EQ(refusal(talk({start_event(kPcmOfAnna), start_event(kPcmOfAnna)})), "invalid_argument event 1008");
  EXPECT_EQ(refusal(talk({start_event(kPcmOfAnna), broken_text()})), "invalid_argument text 1008");
  EXPECT_EQ(refusal(talk({start_event("")}, {{"model", "wibble"}})), "not_found model 1008");
  EXPECT_EQ(refusal(talk(
                {start_event(kPcmOfAnna + R"(,"timeout":0.001)"), text_event("A fish. "), event_of("stop")})),
            "deadline_exceeded  1011");
  EXPECT_EQ(refusal(talk({start_event(R"("reference_id":["anna","alloy"])")})),
            "unsupported request.reference_id 1008");
  const ToldByFish late =
      talk({start_event(kPcmOfAnna), text_event("A small fish swims. And"), broken_text()});
  EXPECT_EQ(refusal(late), "invalid_argument text 1008");
}

TEST_F(FishSockets, ATextMessageIsNotUnderstood) {
  RouteBench bench(fish_live_routes, shared_engine());
  FakeWebSocket socket(testing::get_request("/v1/tts/live"));
  socket.say(R"({"event":"start","request":{"text":""}})");
  converse(bench, socket);
  EXPECT_EQ(text_in(read_msgpack(socket.sent.at(0).data), "reason"), "error");
  EXPECT_EQ(socket.closed_with, 1008);
}

TEST_F(FishSockets, ASilentClientIsLeft) {
  EXPECT_EQ(refusal(talk({}, {}, {.idle_timeout_s = 1})), "invalid_argument  1008");
  EXPECT_EQ(refusal(talk({start_event(kPcmOfAnna)}, {}, {.idle_timeout_s = 1})), "invalid_argument  1008");
}

TEST_F(FishSockets, AClientThatLeavesEndsItsUtterance) {
  RouteBench bench(fish_live_routes, shared_engine());
  FakeWebSocket socket(testing::get_request("/v1/tts/live"));
  for (const std::string& message : {start_event(kPcmOfAnna), text_event("A fish. A moon. A fish. ")})
    socket.say({.text = false, .data = message});
  socket.on_sent = [&](const FakeWebSocket::Message&) { socket.leave(); };
  converse(bench, socket);
  EXPECT_EQ(socket.sent.size(), 1u);
}

// 200 conversations of random messages: each ends with one finish, and is closed.
TEST_F(FishSockets, RandomConversationsEndWithOneFinish) {
  const std::string messages[] = {text_event("Hm. "),
                                  text_event(""),
                                  text_event("A fish"),
                                  event_of("flush"),
                                  event_of("flush"),
                                  event_of("stop"),
                                  event_of("stpo"),
                                  start_event(kPcmOfAnna),
                                  packed({{"event", {std::string("text")}}, {"text", {int64_t{7}}}}),
                                  packed({{"event", {std::string("flush")}}, {"now", {true}}}),
                                  "\x81",
                                  ""};
  std::mt19937 random(11);
  for (int run = 0; run < 200; ++run) {
    std::vector<std::string> all;
    if (random() % 5 != 0)
      all.push_back(start_event(R"("format":"pcm","reference_id":"anna","max_new_tokens":4)"));
    for (int i = 0; i < 4; ++i) {
      const size_t most = random() % 3 == 0 ? std::size(messages) : 6;
      all.push_back(messages[random() % most]);
    }
    all.push_back(event_of("stop"));
    const ToldByFish told = talk(all);
    ASSERT_TRUE(told.closed_with == 1000 || told.closed_with == 1008) << run;
    ASSERT_EQ(told.closed_with == 1000, reason(told) == "stop") << run;
    if (reason(told) == "error") {
      ASSERT_EQ(text_in(told.finishes[0], "code"), "invalid_argument") << run;
    }
  }
}

}  // namespace
}  // namespace shoal::server
