// One tile of weights times sixteen rows of activations, in the layout and order of matrix_layout.cuh.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/cuda/ptx/shared_address.cuh"

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

// Eight rows of 32 inputs out of shared memory, as operands of two multiplications: lane (g = lane / 4, q =
// lane % 4) gets inputs 8c + 2q and 8c + 2q + 1 of row g in component c. `chunk`: where chunk lane / 8 of row
// lane % 8 lies.
__device__ inline uint4 load_operand(const uint4* chunk) {
  uint4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(shared_address(chunk))
               : "memory");
  return v;
}

// The same out of registers, of which lane (g, q) holds chunk q of row g: a transposition among four lanes.
__device__ inline uint4 operand_of_chunks(uint4 v) {
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
  uint32_t a = __shfl_xor_sync(~0u, odd ? v.x : v.y, 1), b = __shfl_xor_sync(~0u, odd ? v.z : v.w, 1);
  if (odd)
    v.x = a, v.z = b;
  else
    v.y = a, v.w = b;
  a = __shfl_xor_sync(~0u, high ? v.x : v.z, 2), b = __shfl_xor_sync(~0u, high ? v.y : v.w, 2);
  if (high)
    v.x = a, v.y = b;
  else
    v.z = a, v.w = b;
  return v;
}

// sums += x w over the 32 inputs of a tile, all three as load_operand gives them: low are rows 0 .. 7, high
// rows 8 .. 15 of x. The lane gets rows g (sums[0], sums[1]) and g + 8 (sums[2], sums[3]) of outputs 2q and
// 2q + 1.
template <typename T>
__device__ inline void multiply_tile(float (&sums)[4], const uint4& low, const uint4& high,
                                     const uint4& weight) {
  multiply_16<T>(sums, low.x, high.x, low.y, high.y, weight.x, weight.y);
  multiply_16<T>(sums, low.z, high.z, low.w, high.w, weight.z, weight.w);
}

// The transpose of 8 x 8 elements of 16 bits: lane 4 r + c has elements 2 c and 2 c + 1 of row r. By whole
// warps.
__device__ inline uint32_t transposed(uint32_t two) {
  uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(two));
  return result;
}

}  // namespace shoal::ops::cuda
