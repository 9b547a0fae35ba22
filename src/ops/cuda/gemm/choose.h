// Who computes a product of many rows: the kernels of tile/ or, where the GPU can, those of sm90/wide.cuh.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// 16-bit weights; any number of rows and taps.
void tile_product(Context& ctx, const Product& product);

// snake_alpha: f32 [outputs]; the result passes through snake before it is stored. Null: it does not.
void tile_product(Context& ctx, const Product& product, const float* snake_alpha);

// As tile_product, where the GPU can and it is expected to be faster. False: nothing is done.
bool wide_product(Context& ctx, const Product& product, const float* snake_alpha);

// Whether the wide kernel that choose_wide gives is expected to be faster than tile_kernel.
bool is_wide(const MatrixShape& matrix, int64_t rows, const Machine& machine);

}  // namespace shoal::ops::cuda
