#include "fleet/rolling.h"

#include <gmock/gmock.h>

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using Workers = std::vector<RollingRestart::Worker>;

constexpr auto kReady = WorkerState::ready;

TEST(RollingRestart, OneAfterTheOtherWhileAllOthersAreReady) {
  RollingRestart rolling(Workers{{kReady}, {kReady}}, {0, 1});
  EXPECT_THAT(rolling.next({{kReady}, {kReady}}), Optional(0u));
  for (const WorkerState state : {WorkerState::draining, WorkerState::waiting, WorkerState::starting})
    EXPECT_EQ(rolling.next({{state}, {kReady}}), std::nullopt);
  EXPECT_THAT(rolling.next({{kReady}, {kReady}}), Optional(1u));
  EXPECT_EQ(rolling.next({{kReady}, {WorkerState::starting}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::goes_on);
  EXPECT_EQ(rolling.next({{kReady}, {kReady}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::done);
  EXPECT_THAT(rolling.had_turn(), ElementsAre(0u, 1u));
}

TEST(RollingRestart, OneThatIsUnreadyComesFirstAndTheOthersWaitForIt) {
  RollingRestart rolling(Workers{{kReady}, {WorkerState::given_up, 8}}, {0, 1});
  EXPECT_THAT(rolling.next({{kReady}, {WorkerState::given_up, 8}}), Optional(1u));
  EXPECT_EQ(rolling.next({{kReady}, {WorkerState::starting}}), std::nullopt);
  EXPECT_THAT(rolling.next({{kReady}, {kReady}}), Optional(0u));
}

TEST(RollingRestart, OneAloneWaitsForTheOthersUnlessItIsUnready) {
  RollingRestart ready(Workers{{kReady}, {kReady}}, {0});
  EXPECT_EQ(ready.next({{kReady}, {WorkerState::unready}}), std::nullopt);
  EXPECT_THAT(ready.next({{kReady}, {kReady}}), Optional(0u));
  EXPECT_EQ(ready.next({{kReady}, {kReady}}), std::nullopt);
  EXPECT_EQ(ready.outcome(), RollingRestart::Outcome::done);
  RollingRestart unready(Workers{{WorkerState::unready}, {WorkerState::unready}}, {0});
  EXPECT_THAT(unready.next({{WorkerState::unready}, {WorkerState::unready}}), Optional(0u));
}

TEST(RollingRestart, OneThatEndsByItselfBeforeItsTurnHasHadIt) {
  RollingRestart rolling(Workers{{kReady}, {kReady}}, {0, 1});
  EXPECT_THAT(rolling.next({{kReady}, {kReady}}), Optional(0u));
  EXPECT_EQ(rolling.next({{WorkerState::starting}, {WorkerState::waiting, 1}}), std::nullopt);
  EXPECT_EQ(rolling.next({{kReady}, {WorkerState::starting, 1}}), std::nullopt);
  EXPECT_EQ(rolling.next({{kReady}, {kReady, 1}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::done);
}

TEST(RollingRestart, AFailureEndsIt) {
  RollingRestart rolling(Workers{{kReady, 1}, {kReady}}, {0, 1});
  EXPECT_THAT(rolling.next({{kReady, 1}, {kReady}}), Optional(0u));
  EXPECT_EQ(rolling.next({{WorkerState::starting, 0}, {kReady}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::goes_on);
  EXPECT_EQ(rolling.next({{WorkerState::waiting, 1}, {kReady}}), std::nullopt);
  EXPECT_EQ(rolling.outcome(), RollingRestart::Outcome::failed);
  EXPECT_EQ(rolling.next({{kReady, 1}, {kReady}}), std::nullopt);
}

}  // namespace
}  // namespace shoal::fleet
