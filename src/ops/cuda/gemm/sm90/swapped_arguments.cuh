// The arguments of the kernels of swapped.cuh.
#pragma once

#include <cuda.h>

#include "ops/cuda/gemm/operands/with_weights.cuh"
#include "ops/cuda/gemm/sm90/swapped_product.h"

namespace shoal::ops::cuda {

constexpr int kSwappedWarps = 12;  // that multiply, of a block, at most
// Of a thread that multiplies, taken from those that load.
constexpr int kSwappedRegisters = 152, kSwappedLoaderRegisters = 40;
static_assert(kSwappedWarps / 4 * (kSwappedRegisters - 128) <= 128 - kSwappedLoaderRegisters,
              "a kernel of 512 threads begins with 128 each");

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
  int output_blocks;
  bool paired;
  bool bare;  // results are the sums, in f32
  bool once;  // weights are read from device memory anyway (is_large)
};

// Starts the kernel of a.plan on this many blocks.
template <typename T, TileWeights kWeights>
void launch_swapped(Context& ctx, const SwappedArguments& a, int64_t blocks);

}  // namespace shoal::ops::cuda
