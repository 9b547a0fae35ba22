#include "runtime/schedule/device_share.h"

#include <gtest/gtest.h>

namespace shoal::runtime {
namespace {

TEST(DeviceShare, FewAndVeryManySpeakOnTheWholeDevice) {
  for (const bool dividing : {false, true})
    for (const int64_t speaking : {0, 1, 8, 39, 97, 256, 1024})
      EXPECT_FALSE(divides_device(dividing, speaking)) << speaking;
}

TEST(DeviceShare, ManyDivideIt) {
  for (const bool dividing : {false, true})
    for (const int64_t speaking : {48, 56, 64, 80})
      EXPECT_TRUE(divides_device(dividing, speaking)) << speaking;
}

// A load that swings about one of the limits would otherwise change shares in every step.
TEST(DeviceShare, BetweenTheLimitsItStaysAsItIs) {
  int changes = 0;
  bool dividing = false;
  for (int64_t speaking = 0; speaking <= 1024; ++speaking) {
    const bool from_whole = divides_device(false, speaking), from_part = divides_device(true, speaking);
    EXPECT_TRUE(from_part || !from_whole) << speaking;
    const bool now = divides_device(dividing, speaking);
    changes += now != dividing;
    dividing = now;
  }
  EXPECT_EQ(changes, 2);
  EXPECT_NE(divides_device(false, kLeastToDivide - 1), divides_device(true, kLeastToDivide - 1));
}

TEST(DeviceShare, PromptsAreComputedOnTheWholeDevice) {
  EXPECT_FALSE(prefers_whole_device(0));
  EXPECT_TRUE(prefers_whole_device(64));
  EXPECT_TRUE(prefers_whole_device(2048));
}

TEST(DeviceShare, PassesArePutOffForManyPromptColumnsUnlessVeryManySpeak) {
  for (const int64_t speaking : {0, 1, 64, 96}) {
    EXPECT_FALSE(puts_passes_off(0, speaking));
    EXPECT_FALSE(puts_passes_off(499, speaking));
    EXPECT_TRUE(puts_passes_off(500, speaking));
    EXPECT_TRUE(puts_passes_off(8192, speaking));
  }
  EXPECT_FALSE(puts_passes_off(8192, 97));
}

}  // namespace
}  // namespace shoal::runtime
