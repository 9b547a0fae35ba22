// Products of f32 weights.
#pragma once

#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// f32 weights; any number of rows and taps.
void f32_product(Context& ctx, const Product& product);

}  // namespace shoal::ops::cuda
