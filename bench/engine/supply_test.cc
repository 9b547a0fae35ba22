#include "bench/engine/supply.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal::bench {
namespace {

TEST(Supply, ClosedLoopGivesEachFreeUserOneRequest) {
  Supply supply({.users = 2, .requests = 3}, 100);
  EXPECT_EQ(supply.next_us(), 100);
  supply.take();
  EXPECT_EQ(supply.next_us(), 100);
  supply.take();
  EXPECT_EQ(supply.next_us(), std::nullopt);  // both wait for their answers
  EXPECT_FALSE(supply.exhausted(500));
  supply.user_is_free(700);
  EXPECT_EQ(supply.next_us(), 700);
  supply.take();
  supply.user_is_free(800);
  EXPECT_EQ(supply.next_us(), std::nullopt);
  EXPECT_TRUE(supply.exhausted(800));
  EXPECT_EQ(supply.taken(), 3);
}

TEST(Supply, TheUserWhoIsFreeFirstComesFirst) {
  Supply supply({.users = 2, .requests = 9}, 0);
  supply.take();
  supply.take();
  supply.user_is_free(900);
  supply.user_is_free(300);
  EXPECT_EQ(supply.next_us(), 300);
}

TEST(Supply, ClosedLoopEndsWithItsTime) {
  Supply supply({.users = 1, .duration_s = 1}, 5);
  supply.take();
  EXPECT_FALSE(supply.exhausted(1'000'004));
  EXPECT_TRUE(supply.exhausted(1'000'005));
  supply.user_is_free(1'000'005);
  EXPECT_EQ(supply.next_us(), std::nullopt);
}

TEST(Supply, OpenLoopArrivesAtItsRateWhateverHappens) {
  Supply supply({.rate_per_s = 100, .duration_s = 100, .seed = 3}, 1'000);
  int64_t last = 1'000, count = 0;
  while (const auto next = supply.next_us()) {
    ASSERT_GE(*next, last);
    ASSERT_LT(*next, 100'001'000);
    last = *next;
    EXPECT_FALSE(supply.exhausted(last + 1'000'000'000)) << "a late load keeps its plan";
    supply.take();
    ++count;
  }
  EXPECT_TRUE(supply.exhausted(0));
  EXPECT_EQ(supply.taken(), count);
  EXPECT_NEAR(static_cast<double>(count), 10'000, 500);  // five standard deviations of a Poisson count
}

TEST(Supply, OpenLoopCountsRequestsToo) {
  Supply supply({.rate_per_s = 1000, .requests = 4}, 0);
  while (supply.next_us()) supply.take();
  EXPECT_EQ(supply.taken(), 4);
}

TEST(Supply, StopIsTheEnd) {
  for (const LevelPlan& plan :
       {LevelPlan{.users = 4, .requests = 9}, LevelPlan{.rate_per_s = 5, .duration_s = 9}}) {
    Supply supply(plan, 0);
    supply.stop();
    EXPECT_EQ(supply.next_us(), std::nullopt);
    EXPECT_TRUE(supply.exhausted(0));
  }
}

TEST(LevelPlan, ImpossiblePlansAreRefusedByName) {
  const auto problem = [](const LevelPlan& plan) -> std::string {
    try {
      plan.validate();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.message().substr(0, error.message().find(':'));
    }
    return "";
  };
  EXPECT_EQ(problem({.users = 256, .requests = 1}), "");
  EXPECT_EQ(problem({.users = 257, .requests = 1}), "concurrency");
  EXPECT_EQ(problem({.users = 0, .requests = 1}), "concurrency");
  EXPECT_EQ(problem({.users = 1}), "requests");
  EXPECT_EQ(problem({.users = 1, .requests = -1}), "requests");
  EXPECT_EQ(problem({.rate_per_s = 1e9, .duration_s = 1}), "rate");
  EXPECT_EQ(problem({.rate_per_s = -1, .duration_s = 1}), "rate");
  EXPECT_EQ(problem({.rate_per_s = 1, .duration_s = -1}), "duration");
}

}  // namespace
}  // namespace shoal::bench
