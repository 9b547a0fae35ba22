#include "bench/load/live_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/load/sounds_testing.h"

namespace shoal::load {
namespace {

using testing::HasSubstr;

const std::string kStarted =
    R"({"type":"started","id":"","format":"pcm","content_type":"audio/pcm","sample_rate":16000,"seed":7})";
const std::string kDone = R"({"type":"done","id":"","outcome":"completed","seconds":1})";

struct Utterance {
  RequestRecord record;
  LiveExchange exchange;
  explicit Utterance(double leave_after_s = 0)
      : exchange({.container = Container::pcm, .leave_after_s = leave_after_s}, record) {}
  std::string kind() const { return record.failure ? record.failure->kind : ""; }
};

TEST(LiveExchange, RecordsWhenSoundArrives) {
  Utterance u;
  EXPECT_FALSE(u.exchange.take_message(kStarted, 10));
  EXPECT_FALSE(u.exchange.take_message(R"({"type":"segment","index":0,"text":"One."})", 15));
  EXPECT_FALSE(u.exchange.take_sound(samples_of(160, 0), 20));
  EXPECT_FALSE(u.exchange.take_sound(samples_of(80), 30));
  EXPECT_TRUE(u.exchange.take_message(kDone, 40));
  EXPECT_EQ(u.kind(), "");
  EXPECT_EQ(u.record.first_byte_us, 10);
  EXPECT_EQ(u.record.format.rate_hz, 16'000);
  ASSERT_EQ(u.record.pieces.size(), 2u);
  EXPECT_EQ(u.record.pieces[1].at_us, 30);
  EXPECT_EQ(u.record.first_audible_frame, 160);
  EXPECT_EQ(u.record.end_us, 40);
  EXPECT_EQ(u.record.body_bytes, 480);
  EXPECT_TRUE(u.exchange.can_go_on());
}

TEST(LiveExchange, NamesEachFailure) {
  Utterance refused;
  EXPECT_TRUE(
      refused.exchange.take_message(R"({"type":"error","code":"not_found","message":"no voice"})", 5));
  EXPECT_EQ(refused.kind(), "error_not_found");
  EXPECT_THAT(refused.record.failure->detail, HasSubstr("no voice"));
  EXPECT_FALSE(refused.exchange.can_go_on());

  Utterance rateless;
  EXPECT_TRUE(rateless.exchange.take_sound(samples_of(1), 5));
  EXPECT_EQ(rateless.kind(), "not_sound");

  Utterance silent;
  silent.exchange.take_message(kStarted, 5);
  EXPECT_TRUE(silent.exchange.take_message(kDone, 6));
  EXPECT_EQ(silent.kind(), "no_sound");

  Utterance broken;
  broken.exchange.take_message(kStarted, 5);
  broken.exchange.take_sound(samples_of(1), 6);
  broken.exchange.end(7, "closed");
  EXPECT_EQ(broken.kind(), "cut_off");
  EXPECT_EQ(broken.record.end_us, 7);

  Utterance nothing;
  nothing.exchange.end(7, "closed");
  EXPECT_EQ(nothing.kind(), "no_answer");

  Utterance cancelled;
  cancelled.exchange.take_message(kStarted, 5);
  EXPECT_TRUE(cancelled.exchange.take_message(R"({"type":"done","outcome":"cancelled"})", 6));
  EXPECT_EQ(cancelled.kind(), "cut_off");
  EXPECT_FALSE(cancelled.exchange.can_go_on());

  Utterance html;
  EXPECT_TRUE(html.exchange.take_message("<html>", 5));
  EXPECT_EQ(html.kind(), "not_sound");
}

TEST(LiveExchange, LeavesAfterSoMuchSound) {
  Utterance u(0.1);
  u.exchange.take_message(kStarted, 1);
  EXPECT_FALSE(u.exchange.take_sound(samples_of(1'599), 2));
  EXPECT_TRUE(u.exchange.take_sound(samples_of(1), 3));
  EXPECT_EQ(u.record.outcome, Outcome::left);
  EXPECT_FALSE(u.exchange.can_go_on());
}

}  // namespace
}  // namespace shoal::load
