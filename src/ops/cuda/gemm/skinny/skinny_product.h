// Products of few rows by the kernel of skinny.cuh.
#pragma once

#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/skinny/skinny_arguments.cuh"

namespace shoal::ops::cuda {

// Of the product, not cut yet. norm: null if there is none.
SkinnyArguments skinny_arguments(const Product& product, const RmsNorm* norm);

// At most kSkinnyRows rows, one tap. x may also be f32 (x_dtype), to which the norm is
// applied first when there is one; then its rows are 16-byte aligned and depth is a multiple of 8. False, and
// nothing is done: so many inputs do not fit into shared memory, or there are more rows than warps that norm
// them (eight), which a kernel of its own does sooner.
bool skinny_product(Context& ctx, const Product& product, DType x_dtype, const RmsNorm* norm);

// The instances. False, and nothing is started: a block's part does not fit into shared memory.
// (skinny_bf16.cu and its like)
template <typename T, TileWeights kWeights>
bool launch_skinny(Context& ctx, SkinnyArguments arguments, bool float_input);

}  // namespace shoal::ops::cuda
