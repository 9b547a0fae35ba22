#include "ops/device_speed.h"

#include "ops/cuda/device/cuda_testing.h"

namespace shoal::ops::cuda {
namespace {

// Benchmarks measure the speed: this test checks that it runs and gives figures in the range of today's GPUs.
class DeviceSpeedTest : public CudaTest {};

TEST_F(DeviceSpeedTest, TheSpeedOfAGpuIsMeasured) {
  const auto speed = measure_device_speed(ctx());
  ASSERT_TRUE(speed.has_value());
  EXPECT_GT(speed->read_bytes_per_s, 1e10);
  EXPECT_LT(speed->read_bytes_per_s, 1e14);
  EXPECT_GT(speed->bf16_flop_per_s, 1e12);
  EXPECT_LT(speed->bf16_flop_per_s, 1e17);
}

TEST_F(DeviceSpeedTest, ACpuHasNoMeasuredSpeed) {
  EXPECT_FALSE(measure_device_speed(host_ctx()).has_value());
}

}  // namespace
}  // namespace shoal::ops::cuda
