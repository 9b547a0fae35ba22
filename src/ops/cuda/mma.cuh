// One tile of weights times sixteen rows of activations, in the layout and order of matrix_layout.cuh.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shoal::ops::cuda {

// sums += a b, 16 rows by 8 outputs over 16 inputs.
template <typename T>
__device__ inline void multiply_16(float (&sums)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                   uint32_t b0, uint32_t b1);

template <>
__device__ inline void multiply_16<__nv_bfloat16>(float (&sums)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                                  uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

template <>
__device__ inline void multiply_16<__half>(float (&sums)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                           uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// sums += x w over the 32 inputs of a tile. Lane (g = lane / 4, q = lane % 4) brings inputs 8 q .. 8 q + 7 of
// rows g (low) and g + 8 (high) and its 16 bytes of the tile; it gets rows g (sums[0], sums[1]) and g + 8
// (sums[2], sums[3]) of outputs 2 q and 2 q + 1.
template <typename T>
__device__ inline void multiply_tile(float (&sums)[4], const uint4& low, const uint4& high,
                                     const uint4& weight) {
  multiply_16<T>(sums, low.x, high.x, low.y, high.y, weight.x, weight.y);
  multiply_16<T>(sums, low.z, high.z, low.w, high.w, weight.z, weight.w);
}

}  // namespace shoal::ops::cuda
