// Products by the kernels of wide.cuh, which only some GPUs can run.
#pragma once

#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/sm90/wide_choice.h"

namespace shoal::ops::cuda {

// Whether the program has these kernels for the context's GPU: compute capability 9.0.
bool has_wide_kernels(const Context& ctx);

// As tile_product, where the GPU can and it is expected to be faster. False: nothing is done.
bool wide_product(Context& ctx, const Product& product, const float* snake_alpha);

// By a kernel of the caller's choice (can_do, has_wide_kernels).
void wide_product_by(Context& ctx, const Product& product, const WideChoice& choice,
                     const float* snake_alpha = nullptr);

}  // namespace shoal::ops::cuda
