// Stores the sums of a warp's tensor core products (wgmma.cuh) through its own 2 KiB of shared memory. In
// registers, four lanes have eight adjacent values of a row, so a direct store would write a piece of each of
// eight lines of 128 bytes; from shared memory whole lines are written.
#pragma once

#include "ops/cuda/gemm/operands/tile_store.cuh"

namespace shoal::ops::cuda {

constexpr int kLineBytes = 128, kLineVectors = kLineBytes / 16;  // of a row
constexpr int kLineRows = 16, kLineOutputs = kLineBytes / 4;     // of f32

// A vector of 16 bytes; permuted, so that at most two lanes meet in a bank.
__device__ inline uint32_t line_vector(uint32_t shared, int row, int vector) {
  return shared + static_cast<uint32_t>(row * kLineBytes + (vector ^ row % 4 * 2) * 16);
}

// The sums of four tiles of outputs from tile `first` on, known when it is compiled.
template <int kSums>
__device__ inline void share_floats(uint32_t shared, const float (&sums)[kSums], int first) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int n = 0; n < kLineOutputs / kTileOutputs; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int sum = 4 * (first + n) + 2 * half;
      const uint32_t at = line_vector(shared, lane / 4 + 8 * half, 2 * n + lane % 4 / 2);
      asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(at + static_cast<uint32_t>(lane % 2 * 8)),
                   "f"(sums[sum]), "f"(sums[sum + 1])
                   : "memory");
    }
}

// All tiles of values, rounded to `dtype`.
template <int kSums>
__device__ inline void share_rounded(uint32_t shared, const float (&values)[kSums], DType dtype) {
  static_assert(kSums / 4 <= kLineVectors);
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int n = 0; n < kSums / 4; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t at = line_vector(shared, lane / 4 + 8 * half, n) + static_cast<uint32_t>(lane % 4 * 4);
      const int value = 4 * n + 2 * half;
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(at),
                   "r"(rounded_pair(dtype, values[value], values[value + 1]))
                   : "memory");
    }
}

// The first kVectors of each of `rows` rows (of more than 16, 16) -> to, whose rows are `pitch` bytes apart
// and aligned to 16 bytes. Between the warp's writes and its next.
template <int kVectors>
__device__ inline void store_lines(uint32_t shared, char* to, int64_t pitch, int64_t rows) {
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kLineRows * kVectors / 32; ++i) {
    const int item = i * 32 + static_cast<int>(threadIdx.x % 32), row = item / kVectors,
              vector = item % kVectors;
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(line_vector(shared, row, vector))
                 : "memory");
    if (row < rows) *reinterpret_cast<uint4*>(to + row * pitch + vector * 16) = v;
  }
  __syncwarp();
}

}  // namespace shoal::ops::cuda
