#include "ops/cuda_devices.h"

#include <gtest/gtest.h>

namespace shoal::ops {
namespace {

TEST(CudaDevices, AreDescribedCompletelyOrAbsent) {
  for (const CudaDevice& device : cuda_devices()) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GT(device.memory_bytes, int64_t{1} << 30);
    EXPECT_GE(device.major, 3);
  }
}

}  // namespace
}  // namespace shoal::ops
