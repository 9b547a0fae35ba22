// How results leave the registers of a warpgroup's products: four neighbours of a row at a time, and past the
// first-level cache. A residual unit of 192 channels with plain stores takes 123 us instead of 92, products
// of two taps by pairs of results 46 and 35 instead of 42 and 31 (H200, docs/perf/notebook-codec.md).
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace shoal::ops::cuda {

__device__ inline void store_past_first_cache(float* to, const float4& v) {
  asm volatile("st.global.L1::no_allocate.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}
// Four values of 16 bits.
__device__ inline void store_past_first_cache(void* to, const uint2& v) {
  asm volatile("st.global.L1::no_allocate.v2.b32 [%0], {%1,%2};" ::"l"(to), "r"(v.x), "r"(v.y) : "memory");
}

// The same by eights, where outputs do not come in sixteens: of a tile's fragment of mma (multiply_tile) even
// lanes get four neighbours of the first row, odd ones of the row eight later, 32 bytes of a row together.
__device__ inline float4 quad_of_eight(const float (&sums)[4]) {
  const bool odd = threadIdx.x % 2 != 0;
  const float x = __shfl_xor_sync(~0u, odd ? sums[0] : sums[2], 1);
  const float y = __shfl_xor_sync(~0u, odd ? sums[1] : sums[3], 1);
  return odd ? float4{x, y, sums[2], sums[3]} : float4{sums[0], sums[1], x, y};
}
// Where that quad begins among the eight outputs, and whether it is of the later row: 0 or 1.
__device__ inline int quad_column_of_eight() { return static_cast<int>(threadIdx.x % 4 / 2) * 4; }
__device__ inline int row_of_quad() { return static_cast<int>(threadIdx.x % 2); }

// Where a thread's quads begin among 16 outputs (two tiles).
__device__ inline int quad_column() {
  return static_cast<int>(threadIdx.x % 2) * 8 + static_cast<int>(threadIdx.x % 4 / 2) * 4;
}

// A thread's quad of `chunk`, 16 outputs of which each of four lanes has two of the first eight and two of
// the others in `sums`: even lanes get four neighbours of the first, odd ones of the others. So 64 bytes of a
// row are stored together instead of 32. row: 0, or 1 for eight rows later. By all lanes.
template <int kSums>
__device__ inline float4 quad_of(const float (&sums)[kSums], int chunk, int row) {
  const float* const low = &sums[8 * chunk + 2 * row];
  const float* const high = low + 4;
  const bool odd = threadIdx.x % 2 != 0;
  const float x = __shfl_xor_sync(~0u, odd ? low[0] : high[0], 1);
  const float y = __shfl_xor_sync(~0u, odd ? low[1] : high[1], 1);
  return odd ? float4{x, y, high[0], high[1]} : float4{low[0], low[1], x, y};
}

// The same of values that are rounded to pairs of 16 bits already: `first` of the first eight outputs,
// `second` of the others. Half of quad_of's exchanges.
__device__ inline uint2 quad_of_pairs(uint32_t first, uint32_t second) {
  const bool odd = threadIdx.x % 2 != 0;
  const uint32_t other = __shfl_xor_sync(~0u, odd ? first : second, 1);
  return odd ? uint2{other, second} : uint2{first, other};
}

}  // namespace shoal::ops::cuda
