// Shared by the tests of the CUDA convolutions.
#pragma once

#include "ops/conv1d_testing.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/gemm/operands/product_testing.h"

namespace shoal::ops::cuda {

using ConvTest = ConvTestOf<CudaTest>;

// What an f32 snake of x may be off by.
inline double snake_bound(double x, double alpha) { return 8 * kUnit * (std::abs(x) + 1.0 / alpha); }
// And one that is rounded to 16 bits next: its sine is 2^-20.5 + 2^-23 |alpha x| off, and counts twice.
inline double near_snake_bound(double x, double alpha) { return 32 * kUnit * (std::abs(x) + 1.0 / alpha); }

inline std::vector<float> random_alphas(int64_t channels, unsigned seed) {
  std::vector<float> alpha = random_values(channels, seed);
  for (float& a : alpha) a = std::abs(a) + 0.1f;
  return alpha;
}

}  // namespace shoal::ops::cuda
