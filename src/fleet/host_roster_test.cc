#include "fleet/host_roster.h"

#include <gmock/gmock.h>

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSecond_us = 1'000'000;

class Roster : public ::testing::Test {
 protected:
  // What HAProxy was told by a step, a second after the one before.
  std::vector<std::string> step() {
    roster_.step(now_us_ += kSecond_us);
    return std::exchange(told_, {});
  }

  int64_t now_us_ = 0;
  bool listens_ = true, is_busy_ = false;
  std::vector<std::string> told_;
  const HostPlan a_{"a", {"1.2.3.4", 5}, 1}, b_{"b", {"1.2.3.4", 6}, 2};
  HostRoster roster_{[this](const std::string& command) -> std::optional<std::string> {
    told_.push_back(command);
    if (!listens_) return std::nullopt;
    if (command.starts_with("add")) return "New server registered.\n\n";
    if (command.starts_with("del"))
      return is_busy_ ? "Server still has connections\n" : "Server deleted.\n\n";
    return "\n";
  }};
};

TEST_F(Roster, AHostIsAddedOnceAndGetsNothingBeforeItsCheck) {
  roster_.want({a_});
  roster_.balancer_started();
  EXPECT_THAT(step(), IsEmpty()) << "its configuration has it";
  roster_.want({a_, b_});
  EXPECT_THAT(step(), ElementsAre(concat("add server workers/b 1.2.3.4:6 ", kHealth, " weight 2"),
                                  "enable health workers/b;set server workers/b state ready;set server "
                                  "workers/b health down"));
  EXPECT_THAT(step(), IsEmpty());
}

TEST_F(Roster, AHostThatLeavesIsDeletedWhenItIsIdleAndMayComeBackBefore) {
  roster_.want({a_});
  roster_.balancer_started();
  roster_.want({});
  is_busy_ = true;
  const auto leaves = ElementsAre("set server workers/a state maint", "del server workers/a");
  EXPECT_THAT(step(), leaves);
  EXPECT_THAT(step(), leaves);
  roster_.want({a_});
  EXPECT_THAT(step(), ElementsAre("set server workers/a state ready"));
  EXPECT_THAT(step(), IsEmpty());
  roster_.want({});
  is_busy_ = false;
  EXPECT_THAT(step(), leaves);
  EXPECT_THAT(step(), IsEmpty());
}

TEST_F(Roster, AnotherAddressIsAnotherServerAndAnotherWeightIsNot) {
  roster_.want({a_});
  roster_.balancer_started();
  roster_.want({{"a", {"1.2.3.4", 5}, 7}});
  EXPECT_THAT(step(), ElementsAre("set server workers/a weight 7"));
  roster_.want({{"a", {"9.9.9.9", 5}, 7}});
  EXPECT_EQ(step().size(), 4U);
  EXPECT_THAT(step(), IsEmpty());
}

TEST_F(Roster, WithoutAnAnswerItTriesAgainUntilANewBalancerHasReadTheList) {
  listens_ = false;
  roster_.want({b_});
  EXPECT_EQ(step().size(), 1U);
  roster_.step(now_us_ + kSecond_us / 2);
  EXPECT_THAT(told_, IsEmpty()) << "not so often";
  EXPECT_EQ(step().size(), 1U);
  roster_.balancer_started();
  EXPECT_THAT(step(), IsEmpty());
}

TEST_F(Roster, OneThatIsLostHasNoConnectionsAnyMore) {
  roster_.want({a_});
  roster_.balancer_started();
  roster_.cut_off("b");
  EXPECT_THAT(step(), IsEmpty()) << "HAProxy does not have it";
  const auto cuts_off = ElementsAre("set server workers/a health down;shutdown sessions server workers/a");
  roster_.cut_off("a");
  listens_ = false;
  EXPECT_THAT(step(), cuts_off);
  listens_ = true;
  EXPECT_THAT(step(), cuts_off) << "HAProxy had not answered";
  EXPECT_THAT(step(), IsEmpty());
}

}  // namespace
}  // namespace shoal::fleet
