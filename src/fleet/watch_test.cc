#include "fleet/watch.h"

#include <gmock/gmock.h>
#include <vector>

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000;

class Watch : public ::testing::Test {
 protected:
  void make_ready(int64_t now_us) {
    watch_.started(now_us);
    watch_.checked(CheckResult::unready, now_us);
    EXPECT_EQ(watch_.state(), WorkerState::starting);
    watch_.checked(CheckResult::ready, now_us);
    EXPECT_EQ(watch_.state(), WorkerState::ready);
  }

  WatchRules rules_{.longest_pause_us = 3 * kSecond, .most_failures = 5};
  WorkerWatch watch_{rules_};
};

TEST_F(Watch, PausesGrowToTheLongestAndThenItIsGivenUp) {
  std::vector<int64_t> pauses;
  while (watch_.state() != WorkerState::given_up && pauses.size() < 20) {
    watch_.started(0);
    watch_.ended(0);
    if (watch_.state() == WorkerState::given_up) break;
    pauses.push_back(watch_.pause_us());
    EXPECT_FALSE(watch_.should_start(watch_.pause_us() - 1));
    EXPECT_TRUE(watch_.should_start(watch_.pause_us()));
  }
  EXPECT_THAT(pauses, ElementsAre(kSecond / 2, kSecond, 2 * kSecond, 3 * kSecond));
  EXPECT_FALSE(watch_.should_start(1000 * kSecond));
  EXPECT_EQ(watch_.restarts(), 4);
}

TEST_F(Watch, OneThatWasGivenUpStartsAgainWhenItIsForgiven) {
  for (int i = 0; i < rules_.most_failures; ++i) {
    watch_.started(0);
    watch_.ended(0);
  }
  EXPECT_EQ(watch_.state(), WorkerState::given_up);
  watch_.forgiven(kSecond);
  EXPECT_FALSE(watch_.should_start(kSecond - 1));
  EXPECT_TRUE(watch_.should_start(kSecond));
  EXPECT_EQ(watch_.failures(), 0);
  watch_.started(kSecond);
  watch_.forgiven(kSecond);
  EXPECT_EQ(watch_.state(), WorkerState::starting);
}

TEST_F(Watch, AWorkerThatWasReadyForLongEnoughBeginsItsRowAnew) {
  for (int i = 0; i < 20; ++i) {
    make_ready(0);
    watch_.checked(CheckResult::ready, rules_.steady_us);
    watch_.ended(rules_.steady_us);
    EXPECT_EQ(watch_.state(), WorkerState::waiting);
    EXPECT_EQ(watch_.pause_us(), rules_.first_pause_us);
  }
  EXPECT_EQ(watch_.restarts(), 19);
}

TEST_F(Watch, ReadyForAMomentIsNotEnough) {
  for (int i = 0; i < rules_.most_failures; ++i) {
    make_ready(0);
    watch_.checked(CheckResult::ready, rules_.steady_us - 1);
    watch_.ended(rules_.steady_us);
  }
  EXPECT_EQ(watch_.state(), WorkerState::given_up);
}

TEST_F(Watch, SilentChecksInARowMeanThatItHangs) {
  make_ready(0);
  for (int i = 0; i < 10; ++i) {
    watch_.checked(CheckResult::silent, kSecond);
    watch_.checked(CheckResult::silent, kSecond);
    EXPECT_FALSE(watch_.hangs(kSecond));
    watch_.checked(i % 2 == 0 ? CheckResult::ready : CheckResult::unready, kSecond);
  }
  for (int i = 0; i < rules_.most_silent_checks; ++i) watch_.checked(CheckResult::silent, kSecond);
  EXPECT_TRUE(watch_.hangs(kSecond));
  watch_.killed();
  EXPECT_FALSE(watch_.hangs(kSecond));
  EXPECT_TRUE(watch_.runs());
}

// Checks follow each other at once while none is answered in time.
TEST_F(Watch, AWorkerThatStopsIsFoundWithinThreeSeconds) {
  make_ready(0);
  int64_t now = 0;
  watch_.check_began(now);
  watch_.checked(CheckResult::ready, now);
  while (!watch_.hangs(now)) {
    while (!watch_.should_check(now)) now += 1000;
    watch_.check_began(now);
    now += rules_.check_timeout_us;
    watch_.checked(CheckResult::silent, now);
  }
  EXPECT_LT(now, 3 * kSecond);
}

TEST_F(Watch, WhileAProcessStartsOnlyALongSilenceIsASign) {
  watch_.started(0);
  const auto be_silent = [&] {
    for (int i = 0; i < 50; ++i) watch_.checked(CheckResult::silent, kSecond);
  };
  be_silent();
  EXPECT_FALSE(watch_.hangs(rules_.start_silence_us));
  EXPECT_TRUE(watch_.hangs(rules_.start_silence_us + 1));
  watch_.checked(CheckResult::unready, 2 * kSecond);  // it listens, and loads its model
  be_silent();
  EXPECT_FALSE(watch_.hangs(2 * kSecond + rules_.start_silence_us));
  EXPECT_TRUE(watch_.hangs(2 * kSecond + rules_.start_silence_us + 1));
}

TEST_F(Watch, TimeInWhichNobodyCheckedIsNoSilence) {
  watch_.started(0);
  watch_.checked(CheckResult::unready, kSecond);
  EXPECT_FALSE(watch_.hangs(kSecond + 2 * rules_.start_silence_us));
}

TEST_F(Watch, TheNextProcessStartsWithTheSamePatience) {
  make_ready(0);
  watch_.ended(kSecond);
  watch_.started(2 * kSecond);
  for (int i = 0; i < 50; ++i) watch_.checked(CheckResult::silent, 3 * kSecond);
  EXPECT_FALSE(watch_.hangs(2 * kSecond + rules_.start_silence_us));
  EXPECT_TRUE(watch_.hangs(2 * kSecond + rules_.start_silence_us + 1));
}

TEST_F(Watch, ALateAnswerOfAnEndedProcessChangesNothing) {
  make_ready(0);
  watch_.ended(kSecond);
  watch_.checked(CheckResult::ready, 2 * kSecond);
  EXPECT_EQ(watch_.state(), WorkerState::waiting);
}

TEST_F(Watch, AWantedEndIsNoFailureAndStartsAtOnce) {
  make_ready(0);
  watch_.asked_to_end(5 * kSecond);
  watch_.checked(CheckResult::ready, kSecond);
  EXPECT_EQ(watch_.state(), WorkerState::draining);
  EXPECT_FALSE(watch_.should_check(4 * kSecond));
  EXPECT_FALSE(watch_.is_overdue(5 * kSecond - 1));
  EXPECT_TRUE(watch_.is_overdue(5 * kSecond));
  watch_.killed();
  EXPECT_FALSE(watch_.is_overdue(6 * kSecond));
  watch_.ended(6 * kSecond);
  EXPECT_TRUE(watch_.should_start(6 * kSecond));
  EXPECT_EQ(watch_.failures(), 0);
  watch_.started(6 * kSecond);
  watch_.ended(7 * kSecond);
  EXPECT_EQ(watch_.failures(), 1) << "the next end is not wanted";
}

TEST_F(Watch, AReadyWorkerIsAskedLessOften) {
  watch_.started(0);
  EXPECT_TRUE(watch_.should_check(rules_.check_us / 5));
  watch_.check_began(0);
  watch_.checked(CheckResult::ready, 100);
  EXPECT_FALSE(watch_.should_check(rules_.check_us - 1));
  EXPECT_TRUE(watch_.should_check(rules_.check_us));
}

}  // namespace
}  // namespace shoal::fleet
