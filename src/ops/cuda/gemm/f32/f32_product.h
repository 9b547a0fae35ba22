// Products of f32 weights on the ordinary units.
#pragma once

#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// Of the kernels here and of those for tensor cores (tf32_product.h).
constexpr int64_t kF32FewRows = 8;     // few_rows takes at most
constexpr int64_t kF32BlockRows = 64;  // of a block of `blocks`, whose columns are kF32Columns
constexpr int kF32SliceWarps = 8;      // of a block of `slices` at most: each takes a segment at a time

// few_rows: at most kF32FewRows rows of one tap, in place; the others any number of rows and taps. blocks:
// results of kF32BlockRows x kF32Columns; slices: smaller ones, for results too small to keep the GPU busy
// otherwise (f32_slices.cu).
void f32_few_rows(Context& ctx, const Product& product);
void f32_blocks(Context& ctx, const Product& product);
void f32_slices(Context& ctx, const Product& product);

}  // namespace shoal::ops::cuda
