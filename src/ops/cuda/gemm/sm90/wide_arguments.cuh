// The arguments of the kernels of wide.cuh.
#pragma once

#include <cuda.h>

#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/gemm/sm90/wide_choice.h"

namespace shoal::ops::cuda {

struct WideArguments {
  TileArguments tile;  // row_blocks and output_blocks are of these kernels
  WidePlan plan;
  int cluster = 1;
  CUtensorMap weights;  // a stage of the outputs of a block
  // A tile of the rows of a block, or two, where row t's taps are rows t, t + tap_rows, ... of x.
  CUtensorMap rows;
  int map_tiles = 1;
  int tap_rows = 0;
  bool reads_once = false;  // one block alone reads a weight

  __device__ bool has_row_map() const { return !tile.first_rows; }
};

// Of a product by a kernel of the caller's choice (can_do, or by segment), and its number of blocks.
WideArguments wide_arguments(const Product& product, const WideChoice& choice, const float* snake_alpha,
                             const Machine& machine);
int64_t wide_blocks(const WideArguments& arguments, const WideChoice& choice, const Machine& machine);

// Starts the kernel of wide_choice.h's choice on this many blocks.
template <typename T>
void launch_wide(Context& ctx, const WideChoice& choice, int64_t blocks, const WideArguments& arguments);

}  // namespace shoal::ops::cuda
