// Weights of 8 bits become operands: a lane's eight bytes of a tile (matrix_layout.cuh), as load_operand
// gives them for 16 bits. A weight is its integer, exact in either dtype, times its output's scale, rounded
// once: the same in every kernel, so that 8-bit weights are 16-bit weights that were rounded before.
//
// A byte holds the integer + 128. Below a zero byte that is the bf16 number byte * 2^-133, linear from the
// subnormal numbers into the first normal ones, so that one fused multiply-add, which rounds once, makes the
// weight of it. For that operands of bf16 are 2^-21 of their weights.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

// Twice the scale of an output.
template <typename T>
class TileScale {
  static constexpr bool kHalf = std::is_same_v<T, __half>;
  using Two = std::conditional_t<kHalf, __half2, __nv_bfloat162>;

 public:
  // What operands are of their weights, inverted: a power of two.
  static constexpr float kUnit = kHalf ? 1.0f : 0x1p21f;

  TileScale() = default;
  // scale: one that T holds; for bf16 below 2^15.
  __device__ explicit TileScale(float scale) {
    if constexpr (kHalf)
      factor_ = __float2half2_rn(scale);
    else
      factor_ = __float2bfloat162_rn(scale * 0x1p112f), zero_ = __float2bfloat162_rn(scale * -0x1p-14f);
  }

  __device__ uint4 operand(uint2 bytes) const {
    return {two<0x4140>(bytes.x), two<0x4342>(bytes.x), two<0x4140>(bytes.y), two<0x4342>(bytes.y)};
  }
  // The weights themselves.
  __device__ uint4 weights(uint2 bytes) const {
    const uint4 v = operand(bytes);
    return {times_unit(v.x), times_unit(v.y), times_unit(v.z), times_unit(v.w)};
  }

 private:
  // kBytes: which bytes of a word, as __byte_perm takes them.
  template <unsigned kBytes>
  __device__ uint32_t two(uint32_t word) const {
    if constexpr (kHalf)  // below 0x64, a byte counts from the f16 number 1024
      return bits(
          __hmul2(__hsub2(value(__byte_perm(word, 0x64646464u, kBytes)), value(0x64806480u)), factor_));
    else
      return bits(__hfma2(value(__byte_perm(word, 0, kBytes)), factor_, zero_));
  }
  static __device__ uint32_t times_unit(uint32_t two) {
    if constexpr (kHalf)
      return two;
    else
      return bits(__hmul2(value(two), __float2bfloat162_rn(kUnit)));
  }
  static __device__ Two value(uint32_t bits) { return *reinterpret_cast<const Two*>(&bits); }
  static __device__ uint32_t bits(Two value) { return *reinterpret_cast<const uint32_t*>(&value); }

  Two factor_, zero_;  // what the integer 0 is subtracted as
};

}  // namespace shoal::ops::cuda
