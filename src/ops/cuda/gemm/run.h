// Runs the kernel that choose() says.
#pragma once

#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// Of a linear layer; x as the weights' operand.
void run_linear(Context& ctx, const Product& product);

// Of a convolution. snake_alpha: f32 [outputs]; the result passes through snake before it is stored; null: it
// does not.
void run_convolution(Context& ctx, const Product& product, const float* snake_alpha = nullptr);

}  // namespace shoal::ops::cuda
