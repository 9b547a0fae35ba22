// Products of few rows and large matrices by the kernel of streamed.cuh (compute capability 9.0).
#pragma once

#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/skinny/skinny_arguments.cuh"

namespace shoal::ops::cuda {

// As skinny_product: rows of the weights' dtype, or f32 rows and a norm, then at most kNormRows. blocks: 0
// for one to a multiprocessor. False, and nothing is started: another GPU, or no room.
bool streamed_product(Context& ctx, const Product& product, const RmsNorm* norm, int blocks = 0);

// The instances. (streamed_bf16.cu and its like)
template <typename T, TileWeights kWeights>
void launch_streamed(Context& ctx, const SkinnyArguments& a, int blocks);

}  // namespace shoal::ops::cuda
