// Products of few rows and large matrices by the kernel of split.cuh (compute capability 9.0).
#pragma once

#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/skinny/skinny_arguments.cuh"

namespace shoal::ops::cuda {

// As skinny_product: at most kNormRows rows of the operands' dtype, without a norm; of those is_split allows
// (split_cut.h). clusters: 0 for as many as run at once. False, and nothing is started: another GPU, or no
// room.
bool split_product(Context& ctx, const Product& product, int clusters = 0);

// The instances. (split_bf16.cu and its like)
template <typename T, TileWeights kWeights>
void launch_split(Context& ctx, const SkinnyArguments& a, int clusters);

}  // namespace shoal::ops::cuda
