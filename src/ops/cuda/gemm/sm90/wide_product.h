// Products by the kernels of wide.cuh, which only some GPUs can run.
#pragma once

#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/sm90/wide_choice.h"

namespace shoal::ops::cuda {

// By a kernel of the caller's choice (can_do), where has_wgmma.
void wide_product_by(Context& ctx, const Product& product, const WideChoice& choice,
                     const float* snake_alpha = nullptr);

// The sums of each segment of x weight^T by blocks of their own, as partial_product's; where there is a
// segments_shape.
void wide_segments(Context& ctx, Product product, TensorView sums);

}  // namespace shoal::ops::cuda
