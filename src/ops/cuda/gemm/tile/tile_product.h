// Products by the kernels of tile.cuh.
#pragma once

#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/gemm/tile/tile_choice.h"

namespace shoal::ops::cuda {

// By a kernel of the caller's choice (can_do). 16-bit weights; any number of rows and taps.  snake_alpha: f32
// [outputs]; the result passes through snake before it is stored. Null: it does not.
void tile_product_by(Context& ctx, const Product& product, const TileChoice& choice,
                     const float* snake_alpha = nullptr);

// Starts the kernel of tile_choice.h's shape `shape`.
template <typename T>
void launch_tile(Context& ctx, int shape, bool split, const TileArguments& arguments);

}  // namespace shoal::ops::cuda
