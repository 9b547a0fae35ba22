// The products of a segment whose operands lie in shared memory, whole.
#pragma once

#include "ops/cuda/matrix_layout.cuh"
#include "ops/cuda/wide_mma.cuh"

namespace shoal::ops::cuda {

// Until all four warps of a warpgroup have come here.
__device__ inline void wait_for_group(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
}

// Sums of 64 rows by 2 kSums outputs over `tiles` tiles, by a warpgroup.  rows: [tile][eight rows], of which
// there are `groups` for each tile (what stands behind them may be anything); weights: [row of tiles][tile],
// row_tiles tiles apart.
template <typename T, int kSums>
__device__ inline void multiply_resident(int tiles, int groups, uint32_t rows, uint32_t weights,
                                         int row_tiles, float (&sums)[kSums]) {
  uint64_t a = operand_at(rows, kTileBytes);
  uint64_t b = operand_at(weights, static_cast<uint32_t>(row_tiles * kTileBytes));
  const auto tile_bytes = static_cast<uint32_t>(groups * kTileBytes);
  pin(sums);
  begin_multiplications();
  for (int tile = 0; tile < tiles; ++tile, a += tile_bytes >> 4, b += kTileBytes >> 4) {
    multiply_wide<T>(sums, a, b, tile > 0);
    multiply_wide<T>(sums, a + kSecondHalf, b + kSecondHalf, 1);
  }
  end_multiplications();
  wait_for_multiplications<0>();
  pin(sums);
}

}  // namespace shoal::ops::cuda
