#include "fleet/rolling.h"

#include <gmock/gmock.h>

namespace shoal::fleet {
namespace {

using ::testing::Optional;
using Workers = std::vector<RollingRestart::Worker>;

constexpr auto kReady = WorkerState::ready;

TEST(RollingRestart, OneAfterTheOtherWhileAllOthersAreReady) {
  RollingRestart rolling(Workers{{kReady}, {kReady}});
  EXPECT_THAT(rolling.next({{kReady}, {kReady}}), Optional(0u));
  for (const WorkerState state : {WorkerState::draining, WorkerState::waiting, WorkerState::starting})
    EXPECT_EQ(rolling.next({{state}, {kReady}}), std::nullopt);
  EXPECT_EQ(rolling.next({{kReady}, {WorkerState::unready}}), std::nullopt);
  EXPECT_THAT(rolling.next({{kReady}, {kReady}}), Optional(1u));
  EXPECT_EQ(rolling.next({{kReady}, {WorkerState::starting}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::goes_on);
  EXPECT_EQ(rolling.next({{kReady}, {kReady}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::done);
}

TEST(RollingRestart, AFailureEndsIt) {
  RollingRestart rolling(Workers{{kReady, 1}, {kReady}});
  EXPECT_THAT(rolling.next({{kReady, 1}, {kReady}}), Optional(0u));
  EXPECT_EQ(rolling.next({{WorkerState::starting, 0}, {kReady}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::goes_on);
  EXPECT_EQ(rolling.next({{WorkerState::waiting, 1}, {kReady}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::failed);
  EXPECT_EQ(rolling.next({{kReady, 1}, {kReady}}), std::nullopt);
}

}  // namespace
}  // namespace shoal::fleet
