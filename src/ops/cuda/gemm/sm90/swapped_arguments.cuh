// The arguments of the kernels of swapped.cuh.
#pragma once

#include <cuda.h>

#include "ops/cuda/gemm/operands/with_weights.cuh"
#include "ops/cuda/gemm/sm90/swapped_product.h"

namespace shoal::ops::cuda {

// Whether warpgroups have so many sums that only two of them fit a multiprocessor.
constexpr bool has_many_sums(int group_rows) { return group_rows > kSwappedRows; }
// Warps of a block that multiply, at most.
constexpr int most_swapped_warps(int group_rows) { return has_many_sums(group_rows) ? 8 : 12; }
constexpr int swapped_threads(int group_rows) { return 32 * (most_swapped_warps(group_rows) + 4); }
// Of a thread that multiplies, taken from those that load.
constexpr int swapped_registers(int group_rows) { return has_many_sums(group_rows) ? 232 : 152; }
constexpr int kSwappedLoaderRegisters = 40;
static_assert(most_swapped_warps(64) / 4 * (swapped_registers(64) - 128) <= 128 - kSwappedLoaderRegisters,
              "a kernel of 512 threads begins with 128 each");
static_assert(most_swapped_warps(160) / 4 * (swapped_registers(160) - 168) <= 168 - kSwappedLoaderRegisters,
              "a kernel of 384 threads begins with 168 each");

struct SwappedArguments {
  CUtensorMap x, weights;  // of a stage
  SwappedPlan plan;
  TileForm form;
  const float* scales;  // of 8-bit weights, by row of tiles and output in it
  float* sums;          // [segment][row][output], where each segment has its own blocks; or null
  ProductEpilogue epilogue;
  int64_t rows;
  int outputs, tile_rows;
  int segment_stages;
  int row_blocks, output_blocks;
  int results;  // of blocks: each makes one after the other
  bool paired;
  bool in_pairs;  // y has two adjacent 16-bit outputs at a time
  bool bare;      // results are the sums, in f32
  bool once;      // weights are read from device memory anyway (is_large)
};

// Starts the kernel of a.plan on this many blocks.
template <typename T, TileWeights kWeights>
void launch_swapped(Context& ctx, const SwappedArguments& a, int64_t blocks);

}  // namespace shoal::ops::cuda
