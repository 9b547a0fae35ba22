// Weights of 4 bits become operands: a lane's four bytes of a tile, as load_operand gives them for 16 bits. A
// weight is its integer, exact in either dtype, times the scale of its group plus its minimum, rounded once:
// the same in every kernel, so that 4-bit weights are 16-bit weights that were rounded before.
//
// Lane 4 n + q of a warp has the word of output n: its bits 4 c hold input 8 c + 2 q, its bits 16 + 4 c the
// next one (c = 0 .. 3), so that a shift and a mask put two integers below each other's zeros. That is the
// bf16 number u * 2^-133: one fused multiply-add makes the weight of it. For that, operands of bf16 are 2^-21
// of their weights, and so are the numbers in a record's head: the scale is kept times 2^112, the minimum
// times 2^-21.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

// Scale and minimum of an output's group.
template <typename T>
class NibbleScale {
  static constexpr bool kHalf = std::is_same_v<T, __half>;
  using Two = std::conditional_t<kHalf, __half2, __nv_bfloat162>;

 public:
  // What weights are of their operands: a power of two.
  static constexpr float kUnit = kHalf ? 1.0f : 0x1p21f;

  // As the head of a record keeps them, the scale in the low bits. For bf16 a scale of 2^16 and more becomes
  // infinite.
  static __device__ uint32_t head(float scale, float minimum) {
    if constexpr (kHalf)
      return bits(__floats2half2_rn(scale, minimum));
    else
      return bits(__floats2bfloat162_rn(scale * 0x1p112f, minimum * 0x1p-21f));
  }
  __device__ explicit NibbleScale(uint32_t head)
      : scale_(twice<0x1010>(head)), minimum_(twice<0x3232>(head)) {}

  __device__ uint4 operand(uint32_t word) const {
    return {two(word), two(word >> 4), two(word >> 8), two(word >> 12)};
  }
  // The weights themselves.
  __device__ uint4 weights(uint32_t word) const {
    const uint4 v = operand(word);
    return {times_unit(v.x), times_unit(v.y), times_unit(v.z), times_unit(v.w)};
  }

 private:
  // kBytes: which bytes of the word, as __byte_perm takes them.
  template <unsigned kBytes>
  static __device__ Two twice(uint32_t word) {
    return value(__byte_perm(word, 0, kBytes));
  }
  __device__ uint32_t two(uint32_t word) const {
    const uint32_t integers = word & 0x000f000fu;
    if constexpr (kHalf)  // below 0x64, four bits count from the f16 number 1024
      return bits(__hfma2(__hsub2(value(integers | 0x64006400u), value(0x64006400u)), scale_, minimum_));
    else
      return bits(__hfma2(value(integers), scale_, minimum_));
  }
  static __device__ uint32_t times_unit(uint32_t two) {
    if constexpr (kHalf)
      return two;
    else
      return bits(__hmul2(value(two), __float2bfloat162_rn(kUnit)));
  }
  static __device__ Two value(uint32_t bits) { return *reinterpret_cast<const Two*>(&bits); }
  static __device__ uint32_t bits(Two value) { return *reinterpret_cast<const uint32_t*>(&value); }

  Two scale_, minimum_;
};

}  // namespace shoal::ops::cuda
