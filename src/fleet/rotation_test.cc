#include "fleet/rotation.h"

#include <gmock/gmock.h>
#include <vector>

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Rotated : public ::testing::Test {
 protected:
  std::vector<std::string> told() { return std::exchange(told_, {}); }

  bool listens_ = true;
  std::vector<std::string> told_;
  Rotation rotation_{[this](const std::string& worker, bool in) {
    if (listens_) told_.push_back(worker + (in ? " in" : " out"));
    return listens_;
  }};
};

TEST_F(Rotated, OneThatLeavesIsBackWhenItHasBeenAwayAndIsReady) {
  rotation_.update("w1", true);
  EXPECT_THAT(told(), IsEmpty());
  rotation_.leaves("w1");
  EXPECT_THAT(told(), ElementsAre("w1 out"));
  rotation_.update("w1", false);
  EXPECT_THAT(told(), IsEmpty());
  rotation_.update("w1", true);
  rotation_.update("w1", true);
  EXPECT_THAT(told(), ElementsAre("w1 in"));
}

TEST_F(Rotated, ADrainedOneStaysOutThroughRestarts) {
  rotation_.drain("w1");
  rotation_.update("w1", true);
  rotation_.leaves("w1");
  rotation_.update("w1", true);
  rotation_.confirm("w1");
  EXPECT_THAT(told(), ElementsAre("w1 out"));
  EXPECT_TRUE(rotation_.is_drained("w1"));
  rotation_.resume("w1");
  rotation_.update("w1", true);
  EXPECT_THAT(told(), ElementsAre("w1 in"));
  EXPECT_FALSE(rotation_.is_drained("w1"));
}

TEST_F(Rotated, WhatTheBalancerDidNotHearIsSaidAgain) {
  listens_ = false;
  rotation_.drain("w1");
  rotation_.update("w1", true);
  listens_ = true;
  rotation_.update("w1", true);
  EXPECT_THAT(told(), ElementsAre("w1 out"));
  rotation_.balancer_started();
  rotation_.update("w1", true);
  EXPECT_THAT(told(), ElementsAre("w1 out"));
}

}  // namespace
}  // namespace shoal::fleet
