// Shared by the tests of kernels that only some GPUs can run (has_wgmma).
#pragma once

#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/device/machine.h"

namespace shoal::ops::cuda {

// On other GPUs its tests skip.
class Sm90Test : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (!IsSkipped() && !has_wgmma(ctx())) GTEST_SKIP() << "no kernels for this GPU";
  }
};

// By the type of the weights.
class WideKernelsTest : public Sm90Test, public testing::WithParamInterface<DType> {
 protected:
  static DType dtype() { return GetParam(); }
};

}  // namespace shoal::ops::cuda
