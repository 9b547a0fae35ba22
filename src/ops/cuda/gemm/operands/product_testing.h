// Bounds for the tests of CUDA products.
#pragma once

#include "ops/matrix_testing.h"
#include "tensor/dtype.h"

namespace shoal::ops::cuda {

// The error bound of a sum over `terms` inputs, in units of the sum of magnitudes. The tensor cores add 16
// products and the sum so far after truncating all of them at the last bit of the largest: 17 times two units
// for each 16 inputs, counted in whole tiles, in every tap. Additions of segments and the bias come after.
inline ref::Values product_bound(const ref::Values& magnitude, int64_t terms, DType dtype, int64_t taps = 1) {
  const int64_t units =
      dtype == DType::f32 ? taps * terms + 16 + taps : taps * 34 * 2 * ((terms + 31) / 32) + 16 + taps;
  ref::Values bound;
  for (const double m : magnitude) bound.push_back(static_cast<double>(units) * kUnit * m + 1e-37);
  return bound;
}

// Half an ulp of a dtype relative to its value.
inline double unit_of(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-9 : dtype == DType::f16 ? 0x1p-12 : kUnit;
}

}  // namespace shoal::ops::cuda
