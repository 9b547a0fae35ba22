// Multiplications of 64 inputs at a time, whose rows were copied by tensor maps (resident.cuh, partial.cuh,
// broad.cuh).
#pragma once

#include "ops/cuda/gemm/operands/matrix_layout.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

namespace shoal::ops::cuda {

// Until all four warps of a warpgroup have come here.
__device__ inline void wait_for_group(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
}

// sums = rows weights, or sums += rows weights, over a pair of tiles: rows in the form of
// operand_of_pairs_at, the second tile of weights directly after the first.
template <typename T, int kSums>
__device__ inline void multiply_pair(float (&sums)[kSums], uint64_t rows, uint64_t weights, uint32_t add) {
  constexpr uint64_t kNextTile = kTileBytes >> 4;
  multiply_wide<T>(sums, rows, weights, add);
  multiply_wide<T>(sums, rows + kSecondHalf, weights + kSecondHalf, 1);
  multiply_wide<T>(sums, rows + kSecondTile, weights + kNextTile, 1);
  multiply_wide<T>(sums, rows + kSecondTile + kSecondHalf, weights + kNextTile + kSecondHalf, 1);
}

}  // namespace shoal::ops::cuda
