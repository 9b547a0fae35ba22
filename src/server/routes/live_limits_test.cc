// Live text over a WebSocket: cancelling, faults of messages, limits, slow and idle clients, going away.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

#include "audio/encoder.h"
#include "server/body/value.h"
#include "server/routes/live_conversation_testing.h"

namespace shoal::server {
namespace {

using testing::FakeWebSocket;
using testing::Heard;
using testing::kEnd;
using testing::kStart;
using testing::kThreeSentences;
using testing::LiveRoutes;
using testing::Message;
using testing::number_of;
using testing::piece;
using testing::text_in;

class LiveLimits : public LiveRoutes {};

// Minutes of speech, however late the test is given a processor.
std::string long_tale() {
  std::string tale = "A long tale begins.";
  for (int i = 0; i < 60; ++i) tale += " And goes on and on.";
  return tale;
}

TEST_F(LiveLimits, CancelEndsAnUtteranceAndTheNextOneSpeaks) {
  bool cancelled = false, again = false;
  const uint64_t before = engine_->statistics().cancelled;
  const Heard heard = talk(
      {
          R"({"type":"start","id":"long","max_new_tokens":0,"seed":1})",
          piece(long_tale() + " And goes on, and "),
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
  EXPECT_EQ(text_in(*heard.of("done")[0], "id"), "long");
  EXPECT_TRUE(heard.sound[1] == said(request("A fish.", 5)));
  for (int i = 0; i < 1000 && engine_->statistics().cancelled == before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GT(engine_->statistics().cancelled, before);
}

TEST_F(LiveLimits, AClientThatLeavesCancelsEverything) {
  const uint64_t before = engine_->statistics().cancelled;
  for (const std::string when : {"started", "sound"}) {
    const Heard heard = talk({R"({"type":"start","max_new_tokens":0,"seed":1})", piece(long_tale())}, 9,
                             [&](const std::string& kind, FakeWebSocket& socket) {
                               if (kind == when) socket.leave();
                             });
    ASSERT_TRUE(heard.thrown);
    EXPECT_EQ(heard.thrown->code(), ErrorCode::cancelled);
  }
  // A close handshake in the middle of an utterance is a client's leaving too, but no error.
  const Heard heard = talk({R"({"type":"start","max_new_tokens":0,"seed":1})", piece(long_tale())}, 9,
                           [&](const std::string& kind, FakeWebSocket& socket) {
                             if (kind == "sound") socket.hang_up();
                           });
  EXPECT_FALSE(heard.thrown);
  TearDown();
  EXPECT_GE(engine_->statistics().cancelled, before + 2);
}

TEST_F(LiveLimits, ABadMessageIsReportedAndTheConnectionStaysOpen) {
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
      {R"({"type":"start","sample_rate":7999})", "invalid_argument"},
      {R"({"type":"start","sample_rate":48001})", "invalid_argument"},
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
    EXPECT_NE(text_in(*error, "message"), "");
    EXPECT_EQ(text_in(*error, "request_id"), "test-1");
    EXPECT_EQ(text_in(*error, "message").find("/nonexistent"), std::string::npos)
        << text_in(*error, "message");
  }
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"completed"});
  EXPECT_TRUE(heard.sound[0] == said(request("A fish.", 5)));
}

TEST_F(LiveLimits, NumbersOutOfRangeAreReportedWithTheirField) {
  std::vector<std::string> messages, expected;
  for (const std::string field :
       {"temperature", "top_p", "top_k", "repetition_penalty", "seed", "max_new_tokens", "chunk_length",
        "sample_rate", "speed", "volume", "timeout"}) {
    for (const std::string literal :
         {"-1", "NaN", "Infinity", "-Infinity", "1e308", "-1e308", "1e400", "9223372036854775807",
          "9223372036854775808", "-9223372036854775809", "18446744073709551616", R"("one")", R"("nan")",
          R"("")", "true", "[]", "{}"}) {
      messages.push_back(concat(R"({"type":"start",")", field, "\":", literal, "}"));
      expected.push_back(field);
    }
  }
  for (const std::string& message : {std::string(kStart), piece("A fish."), std::string(kEnd)})
    messages.push_back(message);
  const Heard heard = talk(messages);
  const std::vector<const Value*> errors = heard.of("error");
  ASSERT_EQ(errors.size(), expected.size());
  for (size_t i = 0; i < errors.size(); ++i) {
    EXPECT_EQ(text_in(*errors[i], "code"), "invalid_argument") << messages[i];
    EXPECT_EQ(text_in(*errors[i], "param"), expected[i]) << messages[i];
  }
  EXPECT_TRUE(heard.sound[0] == said(request("A fish.", 5)));
}

TEST_F(LiveLimits, RefusedMessagesAreReportedAndTheUtteranceContinues) {
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

TEST_F(LiveLimits, AFailedUtteranceReportsItsReasonAndEnds) {
  // Half a second of sound takes longer than a millisecond from its text.
  const Heard heard =
      talk({R"({"type":"start","timeout":0.001,"seed":1})", piece("A fish. "), piece("And more."), kEnd});
  EXPECT_EQ(heard.codes(), std::vector<std::string>{"deadline_exceeded"});
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"failed"});
}

TEST_F(LiveLimits, TheTextLimitOfTheServerAppliesToAnUtterance) {
  ServerConfig config;
  config.max_text_length = 10;
  const Heard heard = talk({kStart, piece("1234567"), piece("8901"), piece(" to"), kEnd}, 1, {}, config);
  EXPECT_EQ(heard.codes(), std::vector<std::string>{"too_large"});
  EXPECT_EQ(heard.spoken(), "1234567 to");
}

// Like a language model that writes for long: waiting text is limited, spoken text is not counted.
TEST_F(LiveLimits, WithoutALimitAnUtteranceMayHaveAnyLength) {
  const std::string silent = piece(std::string(size_t{60} << 10, '-'));
  int left = 6;  // 360 KiB, more than a text may have
  const auto say_more = [&](FakeWebSocket& socket) {
    socket.say(silent);
    socket.say(R"({"type":"flush"})");
    socket.say(R"({"type":"ping"})");
  };
  const auto react = [&](const std::string& kind, FakeWebSocket& socket) {
    if (kind != "started" && kind != "pong") return;
    if (left-- > 0) return say_more(socket);
    socket.say(piece("A fish."));
    socket.say(kEnd);
  };
  // A write that takes its time lets the utterance run.
  const Heard heard = talk({kStart}, 1, react, {}, std::chrono::milliseconds(1));
  EXPECT_EQ(heard.codes(), std::vector<std::string>{});
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"completed"});
  EXPECT_TRUE(heard.sound[0] == said(request("A fish.", 5)));
}

TEST_F(LiveLimits, ASlowReaderGetsTheSameSoundAndItsOtherAnswers) {
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

TEST_F(LiveLimits, AnIdleConnectionIsClosed) {
  ServerConfig config;
  config.idle_timeout_s = 1;
  for (const std::vector<std::string>& messages : {std::vector<std::string>{}, {kStart, piece("No end")}}) {
    const Heard heard = talk(messages, 9, {}, config);
    EXPECT_EQ(heard.codes(), std::vector<std::string>{"deadline_exceeded"});
    EXPECT_EQ(heard.closed_with, 1000);
    EXPECT_FALSE(heard.thrown);
  }
}

TEST_F(LiveLimits, DrainingFinishesTheCurrentSpeechThenCloses) {
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

TEST_F(LiveLimits, AfterTheGraceUtterancesThatWaitForTextEnd) {
  const Heard heard = talk({kStart, piece("No end")}, 9, [&](const std::string& kind, FakeWebSocket&) {
    if (kind != "started") return;
    bench_->draining() = true;
    bench_->services().grace_over = true;
  });
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"cancelled"});
  EXPECT_EQ(heard.codes(), std::vector<std::string>{"unavailable"});
  EXPECT_EQ(heard.closed_with, 1001);
}

}  // namespace
}  // namespace shoal::server
