#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "audio/encoder.h"
#include "server/body/value.h"
#include "server/routes/live_testing.h"
#include "shoal/seeds.h"

namespace shoal::server {
namespace {

using testing::FakeWebSocket;
using testing::RouteBench;
using Message = WebSocket::Message;

std::string text_of(const Value& message, std::string_view name) {
  const Value* member = message.find(name);
  const std::string* text = member ? member->as<std::string>() : nullptr;
  return text ? *text : "";
}
double number_of(const Value& message, std::string_view name) {
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
      if (text_of(message, "type") == type) found.push_back(&message);
    }
    return found;
  }
  std::string spoken() const {
    std::string all;
    for (const Value* segment : of("segment")) all += text_of(*segment, "text");
    return all;
  }
  std::vector<std::string> outcomes() const {
    std::vector<std::string> all;
    for (const Value* done : of("done")) all.push_back(text_of(*done, "outcome"));
    return all;
  }
  std::vector<std::string> codes() const {
    std::vector<std::string> all;
    for (const Value* error : of("error")) all.push_back(text_of(*error, "code"));
    return all;
  }
};

class LiveRoutes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    EngineConfig config = testing::built_in_config();
    config.max_queue = 64;
    engine_ = new Engine(config);
    engine_->start();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }
  void TearDown() override {  // nobody is left behind
    for (int i = 0; i < 2000 && open_requests() > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(open_requests(), 0);
  }
  static int64_t open_requests() {
    const Statistics of = engine_->statistics();
    return of.preparing + of.waiting + of.running + of.paused + of.finishing;
  }

  // What a test does when the server has said something: `type`, or "sound".
  using React = std::function<void(const std::string& type, FakeWebSocket& socket)>;

  // Says `messages` at once and then reacts; hangs up after `dones` utterances, or not at all by itself.
  Heard talk(const std::vector<std::string>& messages, size_t dones = 1, const React& react = {},
             ServerConfig config = {}, std::chrono::milliseconds write_takes = {}) {
    RouteBench bench(live_routes, *engine_, std::move(config));
    boost::asio::io_context context(1);
    FakeWebSocket socket(context.get_executor(), testing::get_request("/v1/audio/stream"));
    socket.write_takes = write_takes;
    for (const std::string& message : messages) socket.say(message);
    Heard heard;
    bench_ = &bench;
    socket.on_sent = [&](const Message& message) {
      std::string kind = "sound";
      if (message.text) {
        heard.messages.push_back(read_json(message.data));
        kind = text_of(heard.messages.back(), "type");
      }
      if (kind == "started") heard.sound.emplace_back();
      if (kind == "sound") heard.sound.back() += message.data;
      if (kind != "sound" || heard.kinds.empty() || heard.kinds.back() != kind) heard.kinds.push_back(kind);
      if (react) react(kind, socket);
      if (kind == "done" && heard.of("done").size() == dones) socket.hang_up();
    };
    heard.thrown = testing::converse(bench, socket, context);
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

  static Engine* engine_;
  RouteBench* bench_ = nullptr;  // of the conversation that runs
};

Engine* LiveRoutes::engine_ = nullptr;

constexpr const char* kStart = R"({"type":"start","id":"a","seed":5,"max_new_tokens":12,"normalize":false})";
constexpr const char* kEnd = R"({"type":"end"})";

std::string piece(const std::string& text) {
  return write_json({Value::Object{{"type", {std::string("text")}}, {"text", {text}}}});
}

TEST_F(LiveRoutes, AnUtteranceOfOneSegmentIsWhatTheEngineSays) {
  const Heard heard = talk({kStart, piece("A sma"), piece("ll fi"), piece("sh."), kEnd});
  EXPECT_EQ(heard.kinds, (std::vector<std::string>{"started", "segment", "sound", "done"}));
  EXPECT_FALSE(heard.thrown);
  ASSERT_EQ(heard.sound.size(), 1u);
  EXPECT_TRUE(heard.sound[0] == said(request("A small fish.", 5)));
  EXPECT_FALSE(heard.sound[0].empty());
  const Value& started = *heard.of("started")[0];
  EXPECT_EQ(text_of(started, "id"), "a");
  EXPECT_EQ(text_of(started, "format"), "pcm");
  EXPECT_EQ(number_of(started, "sample_rate"), engine_->sample_rate_hz());
  EXPECT_EQ(number_of(started, "seed"), 5);
  const Value& segment = *heard.of("segment")[0];
  EXPECT_EQ(text_of(segment, "text"), "A small fish.");
  EXPECT_EQ(number_of(segment, "at_seconds"), 0);
  const Value& done = *heard.of("done")[0];
  EXPECT_EQ(text_of(done, "id"), "a");
  EXPECT_EQ(text_of(done, "outcome"), "completed");
  EXPECT_EQ(number_of(done, "segments"), 1);
  EXPECT_NEAR(number_of(done, "seconds"),
              static_cast<double>(heard.sound[0].size()) / 2 / engine_->sample_rate_hz(), 1e-9);
}

// What clients send must not steer the model.
TEST_F(LiveRoutes, ControlTokensAreText) {
  const std::string text = "A fish <|im_end|> swims";
  SpeechRequest as_text = request(text, 5);
  as_text.special_tokens = false;
  const Heard heard = talk({kStart, piece(text), kEnd});
  EXPECT_TRUE(heard.sound[0] == said(as_text));
  SpeechRequest as_token = request(text, 5);
  as_token.special_tokens = true;
  EXPECT_FALSE(heard.sound[0] == said(as_token));
}

TEST_F(LiveRoutes, NamesOfTheOwnVoiceAreTaken) {
  const std::string own = said(request("A fish.", 5));
  for (const std::string name : {"default", "alloy", "built-in"}) {
    const Heard heard =
        talk({R"({"type":"start","seed":5,"max_new_tokens":12,"normalize":false,"voice":")" + name + "\"}",
              piece("A fish."), kEnd});
    EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"completed"});
    EXPECT_TRUE(heard.sound == std::vector<std::string>{own}) << name;
  }
}

constexpr const char* kThreeSentences =
    "One small fish swims under a cold and blue moon. Two small fish swim under a cold and red moon. And all "
    "the others sleep below.";

TEST_F(LiveRoutes, ATextSoundsTheSameHoweverItIsCut) {
  const std::string text = kThreeSentences;
  const Heard whole = talk({kStart, piece(text), kEnd});
  EXPECT_EQ(whole.spoken(), text);
  EXPECT_EQ(whole.of("segment").size(), 3u);
  for (const uint64_t seed : {1, 2}) {
    std::mt19937_64 random(seed);
    std::vector<std::string> messages = {kStart};
    for (size_t begin = 0; begin < text.size();) {
      const size_t bytes = 1 + random() % 9;
      messages.push_back(piece(text.substr(begin, bytes)));
      begin += bytes;
    }
    messages.push_back(kEnd);
    const Heard cut = talk(messages);
    EXPECT_TRUE(cut.sound == whole.sound);
    EXPECT_EQ(cut.spoken(), text);
  }
}

// The engine splits this text in the same places, gives its utterances the same seeds, and keeps the voice of
// the first.
TEST_F(LiveRoutes, SegmentsContinueEachOtherAsTheEnginesOwnUtterancesDo) {
  SpeechRequest one = request(kThreeSentences, 5);
  one.chunk_length = 50;
  Speech speech = engine_->submit(one);
  const std::string expected = pcm(speech.read_all());
  ASSERT_EQ(speech.summary().utterances, 3);
  EXPECT_TRUE(talk({kStart, piece(kThreeSentences), kEnd}).sound[0] == expected);
}

TEST_F(LiveRoutes, ReferencesMakeTheVoiceAndTheNextSegmentIsUnderWayWhileOneIsHeard) {
  const std::vector<std::byte> clip = audio::encode(
      audio::Format::wav, {.sample_rate_hz = engine_->sample_rate_hz(), .rewritable_header = true},
      engine_->submit(request("These are the words of a voice.", 9, 40)).read_all());
  const std::string audio(reinterpret_cast<const char*>(clip.data()), clip.size());
  const std::string words = "These are the words of a voice.";
  const Value start{Value::Object{
      {"type", {std::string("start")}},
      {"seed", {int64_t{5}}},
      {"normalize", {false}},
      {"max_new_tokens", {int64_t{12}}},
      {"references", {Value::Array{{Value::Object{{"audio", {to_base64(audio)}}, {"text", {words}}}}}}}}};
  const uint64_t before = engine_->statistics().submitted;
  uint64_t at_first_sound = 0;
  const Heard heard =
      talk({write_json(start), piece("One fish. Two more fish swim under the cold and blue moon."), kEnd}, 1,
           [&](const std::string& kind, FakeWebSocket&) {
             if (kind == "sound" && at_first_sound == 0) at_first_sound = engine_->statistics().submitted;
           });
  EXPECT_EQ(at_first_sound - before, 2u);
  std::string expected;
  for (const auto& [text, index] :
       {std::pair("One fish.", 0), {"Two more fish swim under the cold and blue moon.", 1}}) {
    SpeechRequest alone = request(text, seed_of_utterance(5, static_cast<size_t>(index)));
    alone.chunk_length = 0;
    alone.references = {{.audio = audio, .text = words}};
    expected += said(alone);
  }
  ASSERT_EQ(heard.sound.size(), 1u);
  EXPECT_TRUE(heard.sound[0] == expected);
  EXPECT_FALSE(heard.sound[0].starts_with(said(request("One fish.", 5)).substr(0, 1000)));
}

TEST_F(LiveRoutes, UtterancesFollowEachOtherEachWithItsSettings) {
  const std::vector<std::pair<std::string, std::string>> formats = {
      {"wav", "RIFF"}, {"flac", "fLaC"}, {"opus", "OggS"}, {"pcm", ""}};
  size_t next = 0;
  const auto begin = [&](FakeWebSocket& socket) {
    if (next == formats.size()) return;
    socket.say(R"({"type":"start","seed":5,"max_new_tokens":16,"format":")" + formats[next++].first + "\"}");
    socket.say(piece("A fish."));
    socket.say(kEnd);
  };
  const Heard heard =
      talk({R"({"type":"ping"})"}, formats.size(), [&](const std::string& kind, FakeWebSocket& socket) {
        if (kind == "pong" || kind == "done") begin(socket);
      });
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>(4, "completed"));
  ASSERT_EQ(heard.sound.size(), formats.size());
  for (size_t i = 0; i < formats.size(); ++i) EXPECT_TRUE(heard.sound[i].starts_with(formats[i].second)) << i;
  SpeechRequest same = request("A fish.", 5, 16);
  same.normalise.reset();
  EXPECT_TRUE(heard.sound[3] == said(same));
  // A wav's samples are those of the bare ones.
  EXPECT_TRUE(heard.sound[0].ends_with(heard.sound[3]));
}

TEST_F(LiveRoutes, AnotherRateIsHeard) {
  const Heard heard =
      talk({R"({"type":"start","seed":5,"max_new_tokens":12,"normalize":false,"sample_rate":8000})",
            piece("A fish."), kEnd});
  EXPECT_EQ(number_of(*heard.of("started")[0], "sample_rate"), 8000);
  const double samples = static_cast<double>(said(request("A fish.", 5)).size()) / 2;
  EXPECT_NEAR(static_cast<double>(heard.sound[0].size()) / 2, samples * 8000 / engine_->sample_rate_hz(), 1);
}

TEST_F(LiveRoutes, FlushSpeaksWhatIsThere) {
  bool ended = false;
  const Heard heard = talk({kStart, piece("No stop here"), R"({"type":"flush"})"}, 1,
                           [&](const std::string& kind, FakeWebSocket& socket) {
                             if (kind != "sound" || std::exchange(ended, true)) return;
                             socket.say(piece(" ... "));  // nothing that can be spoken
                             socket.say(kEnd);
                           });
  EXPECT_EQ(heard.spoken(), "No stop here");
  EXPECT_TRUE(heard.sound[0] == said(request("No stop here", 5)));
}

TEST_F(LiveRoutes, AnUtteranceWithoutTextIsDoneAtOnce) {
  const Heard heard = talk({kStart, kEnd});
  EXPECT_EQ(heard.kinds, (std::vector<std::string>{"started", "done"}));
  EXPECT_EQ(number_of(*heard.of("done")[0], "seconds"), 0);
}

TEST_F(LiveRoutes, CancelEndsAnUtteranceAndTheNextOneSpeaks) {
  bool cancelled = false, again = false;
  const uint64_t before = engine_->statistics().cancelled;
  const Heard heard = talk(
      {
          R"({"type":"start","id":"long","max_new_tokens":0,"seed":1})",
          piece("A long tale begins. And goes on, and "),
      },
      2, [&](const std::string& kind, FakeWebSocket& socket) {
        if (kind == "sound" && !std::exchange(cancelled, true)) {
          socket.say(R"({"type":"cancel"})");
          socket.say(piece("on and on."));  // was under way
          socket.say(kEnd);
        }
        if (kind == "done" && !std::exchange(again, true)) {
          socket.say(R"({"type":"cancel"})");  // too late, no harm
          socket.say(kStart);
          socket.say(piece("A fish."));
          socket.say(kEnd);
        }
      });
  EXPECT_EQ(heard.outcomes(), (std::vector<std::string>{"cancelled", "completed"}));
  EXPECT_EQ(heard.codes(), std::vector<std::string>{});
  EXPECT_EQ(text_of(*heard.of("done")[0], "id"), "long");
  EXPECT_TRUE(heard.sound[1] == said(request("A fish.", 5)));
  for (int i = 0; i < 1000 && engine_->statistics().cancelled == before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GT(engine_->statistics().cancelled, before);
}

TEST_F(LiveRoutes, TheClientsLeavingCancelsEverything) {
  const uint64_t before = engine_->statistics().cancelled;
  for (const std::string when : {"started", "sound"}) {
    const Heard heard = talk(
        {R"({"type":"start","max_new_tokens":0,"seed":1})", piece("A long tale begins. And goes on and on.")},
        9, [&](const std::string& kind, FakeWebSocket& socket) {
          if (kind == when) socket.leave();
        });
    ASSERT_TRUE(heard.thrown);
    EXPECT_EQ(heard.thrown->code(), ErrorCode::cancelled);
  }
  // A close handshake in the middle of an utterance is a client's leaving too, but no error.
  const Heard heard = talk(
      {R"({"type":"start","max_new_tokens":0,"seed":1})", piece("A long tale begins. And goes on and on.")},
      9, [&](const std::string& kind, FakeWebSocket& socket) {
        if (kind == "sound") socket.hang_up();
      });
  EXPECT_FALSE(heard.thrown);
  TearDown();
  EXPECT_GE(engine_->statistics().cancelled, before + 2);
}

TEST_F(LiveRoutes, FaultsOfAMessageAreToldAndTheConnectionLives) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"{", "invalid_argument"},
      {"[]", "invalid_argument"},
      {"{}", "invalid_argument"},
      {R"({"type":"sing"})", "invalid_argument"},
      {R"({"type":7})", "invalid_argument"},
      {R"({"type":"ping","extra":1})", "invalid_argument"},
      {piece("Before any start."), "invalid_argument"},
      {R"({"type":"flush"})", "invalid_argument"},
      {R"({"type":"end"})", "invalid_argument"},
      {R"({"type":"start","temprature":1})", "invalid_argument"},
      {R"({"type":"start","temperature":9})", "invalid_argument"},
      {R"({"type":"start","temperature":1e308})", "invalid_argument"},
      {R"({"type":"start","seed":-1})", "invalid_argument"},
      {R"({"type":"start","repetition_penalty":0})", "invalid_argument"},
      {R"({"type":"start","chunk_length":10})", "invalid_argument"},
      {R"({"type":"start","format":"midi"})", "invalid_argument"},
      {R"({"type":"start","format":"mp3","sample_rate":9999})", "invalid_argument"},
      {R"({"type":"start","voice":"nobody"})", "not_found"},
      {R"({"type":"start","voice":"../../etc/passwd"})", "invalid_argument"},
      {R"({"type":"start","voice":"a","references":[{"audio":"AAAA","text":"b"}]})", "invalid_argument"},
      {R"({"type":"start","references":[{"audio":"bm8gc291bmQ=","text":"b"}]})", "corrupt_file"},
      {R"({"type":"start","timeout":1e6})", "invalid_argument"},
      {R"({"type":"start","id":")" + std::string(200, 'x') + "\"}", "invalid_argument"}};
  std::vector<std::string> messages, expected;
  for (const auto& [message, code] : faults) {
    messages.push_back(message);
    expected.push_back(code);
  }
  for (const std::string& message : {std::string(kStart), piece("A fish."), std::string(kEnd)})
    messages.push_back(message);
  const Heard heard = talk(messages);
  EXPECT_EQ(heard.codes(), expected);
  for (const Value* error : heard.of("error")) {
    EXPECT_NE(text_of(*error, "message"), "");
    EXPECT_EQ(text_of(*error, "request_id"), "test-1");
    EXPECT_EQ(text_of(*error, "message").find("/nonexistent"), std::string::npos)
        << text_of(*error, "message");
  }
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"completed"});
  EXPECT_TRUE(heard.sound[0] == said(request("A fish.", 5)));
}

TEST_F(LiveRoutes, WhatDoesNotFitAnUtteranceIsToldAndTheUtteranceGoesOn) {
  bool told = false;
  const Heard heard = talk(
      {kStart, kStart, piece("A fi"), piece(std::string(70'000, 'x')), piece("sh."), kEnd, piece("More.")}, 1,
      [&](const std::string& kind, FakeWebSocket& socket) {
        if (kind == "error" && !std::exchange(told, true))
          socket.say(Message{.text = false, .data = "\x01\x02"});
      });
  EXPECT_EQ(heard.codes(), (std::vector<std::string>{"invalid_argument", "too_large", "invalid_argument",
                                                     "invalid_argument"}));
  EXPECT_TRUE(heard.sound[0] == said(request("A fish.", 5)));
}

TEST_F(LiveRoutes, AnUtteranceThatFailsSaysWhyAndIsDone) {
  // Half a second of sound takes longer than a millisecond from its text.
  const Heard heard =
      talk({R"({"type":"start","timeout":0.001,"seed":1})", piece("A fish. "), piece("And more."), kEnd});
  EXPECT_EQ(heard.codes(), std::vector<std::string>{"deadline_exceeded"});
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"failed"});
}

TEST_F(LiveRoutes, TheServersLimitOfTextHoldsForAnUtterance) {
  ServerConfig config;
  config.max_text_length = 10;
  const Heard heard = talk({kStart, piece("1234567"), piece("8901"), piece(" to"), kEnd}, 1, {}, config);
  EXPECT_EQ(heard.codes(), std::vector<std::string>{"too_large"});
  EXPECT_EQ(heard.spoken(), "1234567 to");
}

TEST_F(LiveRoutes, ASlowReaderGetsTheSameSoundAndAnswersBetween) {
  bool asked = false;
  const Heard heard = talk(
      {kStart, piece(kThreeSentences), kEnd}, 1,
      [&](const std::string& kind, FakeWebSocket& socket) {
        if (kind == "sound" && !std::exchange(asked, true)) socket.say(R"({"type":"ping"})");
      },
      {}, std::chrono::milliseconds(20));
  EXPECT_EQ(heard.of("pong").size(), 1u);
  EXPECT_LT(std::ranges::find(heard.kinds, "pong"), std::ranges::find(heard.kinds, "done"));
  EXPECT_TRUE(heard.sound == talk({kStart, piece(kThreeSentences), kEnd}).sound);
}

TEST_F(LiveRoutes, AnIdleConnectionIsClosed) {
  ServerConfig config;
  config.idle_timeout_s = 1;
  for (const std::vector<std::string>& messages : {std::vector<std::string>{}, {kStart, piece("No end")}}) {
    const Heard heard = talk(messages, 9, {}, config);
    EXPECT_EQ(heard.codes(), std::vector<std::string>{"deadline_exceeded"});
    EXPECT_EQ(heard.closed_with, 1000);
    EXPECT_FALSE(heard.thrown);
  }
}

TEST_F(LiveRoutes, DrainingEndsWhatIsSpokenAndThenTheConnection) {
  const Heard heard =
      talk({kStart, piece(kThreeSentences), kEnd}, 9, [&](const std::string& kind, FakeWebSocket& socket) {
        if (kind == "segment") bench_->draining() = true;
        if (kind == "done") socket.say(kStart);
      });
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"completed"});
  EXPECT_TRUE(heard.sound[0] == talk({kStart, piece(kThreeSentences), kEnd}).sound[0]);
  for (const std::string& code : heard.codes()) EXPECT_EQ(code, "unavailable");
  EXPECT_EQ(heard.codes().size(), 2u);  // the start, and why it closes
  EXPECT_EQ(heard.closed_with, 1001);
}

}  // namespace
}  // namespace shoal::server
