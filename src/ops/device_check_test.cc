#include "ops/device_check.h"

#include "ops/device_testing.h"

namespace shoal::ops {
namespace {

TEST(DeviceCheck, TheDeviceComputesWhatTheHostComputes) { EXPECT_NO_THROW(check_device(test_device())); }

TEST(DeviceCheck, AMissingDeviceIsAnError) {
  EXPECT_THROW(check_device({DeviceKind::cuda, 99}), Error);
  EXPECT_GE(gpu_available(), !testing_on_cpu());
}

}  // namespace
}  // namespace shoal::ops
