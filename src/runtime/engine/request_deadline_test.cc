// Which time of a request counts, by a clock that the tests set, and what that means for a reader in real
// time.
#include "runtime/engine/request_deadline.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <thread>

#include "base/clock.h"
#include "base/eventually_testing.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/engine/speech_state.h"

namespace shoal::runtime {
namespace {

using std::chrono::milliseconds;
using testing::short_request;
using testing::tiny_config;

constexpr int64_t kSecond = 1'000'000;

TEST(RequestDeadline, PausesWhileThereIsSoundToReadOrPlay) {
  RequestDeadline deadline(0, 60 * kSecond, Counted::silence);
  EXPECT_EQ(deadline.at_us(0), 60 * kSecond);
  EXPECT_EQ(deadline.at_us(59 * kSecond), 60 * kSecond);
  deadline.give(10 * kSecond, 5 * kSecond);  // after ten of sixty seconds
  EXPECT_EQ(deadline.at_us(500 * kSecond), 550 * kSecond) << "fifty are left, whatever the clock says";
  deadline.give(200 * kSecond, 5 * kSecond);  // more sound in addition to the unread sound
  deadline.take(510 * kSecond);
  EXPECT_EQ(deadline.at_us(510 * kSecond), 560 * kSecond);
  deadline.give(520 * kSecond, 30 * kSecond);  // after twenty
  deadline.take(521 * kSecond);
  EXPECT_EQ(deadline.at_us(521 * kSecond), 590 * kSecond) << "it is heard until 550";
  deadline.give(540 * kSecond, 10 * kSecond);
  deadline.take(541 * kSecond);
  EXPECT_EQ(deadline.at_us(541 * kSecond), 600 * kSecond);
  EXPECT_EQ(deadline.at_us(601 * kSecond), 600 * kSecond) << "it is up";
}

TEST(RequestDeadline, AllWaitingCountsForAStreamWithItsOwnTimeout) {
  SpeechRequest request;
  request.delivery = Delivery::streaming;
  request.timeout = milliseconds(10'000);
  RequestDeadline own = deadline_of({}, request, kSecond);
  own.give(2 * kSecond, 100 * kSecond);
  own.take(5 * kSecond);
  EXPECT_EQ(own.at_us(5 * kSecond), 14 * kSecond) << "one of ten seconds is over; the reader waits again";
}

TEST(RequestDeadline, AllWaitingCountsForARequestThatDoesNotStream) {
  EngineConfig config;
  config.request_timeout_s = 3;
  SpeechRequest request;
  request.delivery = Delivery::whole;
  RequestDeadline whole = deadline_of(config, request, kSecond);
  whole.give(2 * kSecond, 9 * kSecond);
  EXPECT_EQ(whole.at_us(100 * kSecond), 4 * kSecond);
}

TEST(RequestDeadline, AnExpiredDeadlineStaysExpiredWhenSoundArrives) {
  RequestDeadline deadline(0, 60 * kSecond, Counted::silence);
  deadline.give(61 * kSecond, kSecond);
  EXPECT_LE(deadline.at_us(70 * kSecond), 70 * kSecond);
}

TEST(RequestDeadline, IsCheckedRarelyEvenWhenLittleTimeIsLeft) {
  RequestDeadline deadline(0, 60 * kSecond, Counted::silence);
  deadline.give(60 * kSecond - 1, kSecond);
  EXPECT_GE(deadline.at_us(70 * kSecond), 70 * kSecond + 10'000);
}

TEST(RequestDeadline, AnInfiniteTimeoutNeverExpires) {
  RequestDeadline deadline;
  deadline.give(kSecond, kSecond);
  EXPECT_EQ(deadline.at_us(2 * kSecond), 0);
  deadline.take(3 * kSecond);
  EXPECT_EQ(deadline.at_us(4 * kSecond), 0);
}

int64_t clock_us = 0;  // of the test below

TEST(SpeechState, OnlyTimeInWhichTheListenerWaitsCounts) {
  clock_us = kSecond;
  SpeechState state(8000, 1, std::make_shared<WakeSignal>(),
                    RequestDeadline(clock_us, 10 * kSecond, Counted::silence), [] { return clock_us; });
  const std::vector<float> sound(8000);
  for (int i = 0; i < 20; ++i) {  // a listener that reads one second after playing the previous one
    state.append(sound);
    clock_us += kSecond;
    EXPECT_GT(state.deadline_us(clock_us), clock_us);
    EXPECT_EQ(state.next().size(), sound.size());
  }
  for (int i = 0; i < 20; ++i) {  // a reader that reads at once from an engine that runs in real time
    state.append(sound);
    EXPECT_EQ(state.next().size(), sound.size());
    clock_us += kSecond;
  }
  EXPECT_EQ(state.deadline_us(clock_us), clock_us + 10 * kSecond) << "he never waited";
  clock_us += 4 * kSecond;
  state.append(sound);
  EXPECT_FALSE(state.next().empty());
  clock_us += 7 * kSecond;
  EXPECT_EQ(state.deadline_us(clock_us), clock_us) << "four seconds and six, beside one that he heard";
}

// Of both families (also kokoro_engine_test.cc).
TEST(RequestDeadline, AReaderThatPlaysWhileReceivingIsNotCutOff) {
  EngineConfig config = tiny_config();
  config.prefetch_s = 1;
  config.threads = 1;
  Engine engine(config);
  engine.start();
  SpeechRequest request = short_request("A slow fish.", 60);
  const int64_t began_us = now_us();
  engine.submit(request).read_all();
  // Several times what it takes on this machine now.
  const milliseconds timeout(std::max<int64_t>(3000, (now_us() - began_us) * 5 / 1000));
  request.timeout = timeout;
  Speech slow = engine.submit(request);
  ASSERT_TRUE(eventually([&] { return engine.statistics().paused == 1; }));
  std::this_thread::sleep_for(timeout + milliseconds(200));
  EXPECT_FALSE(slow.ended());
  EXPECT_FALSE(slow.read_all().empty());
  EXPECT_EQ(engine.statistics().expired, 0u);
}

}  // namespace
}  // namespace shoal::runtime
