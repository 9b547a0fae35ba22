// f32 products on tensor cores (tf32.cuh).
#pragma once

#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// Of a tap at least: of fewer, ordinary units are as exact or more so (docs/perf/notebook-kokoro.md).
constexpr int64_t kTf32Inputs = 64;

// As their namesakes in f32_product.h.
void tf32_few_rows(Context& ctx, const Product& product);
void tf32_blocks(Context& ctx, const Product& product);
void tf32_slices(Context& ctx, const Product& product);

}  // namespace shoal::ops::cuda
