// What 8- and 4-bit weights share on their way to operands: two numbers of the operand's type in a word. An
// integer below zero bits is the bf16 number integer * 2^-133, linear from the subnormal numbers into the
// first normal ones, so that one fused multiply-add, which rounds once, makes the weight of it. For that,
// operands of bf16 are 2^-21 of their weights.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace shoal::ops::cuda {

template <typename T>
class OperandPair {
 public:
  // What weights are of their operands: a power of two.
  static constexpr float kUnit = std::is_same_v<T, __half> ? 1.0f : 0x1p21f;

 protected:
  static constexpr bool kHalf = std::is_same_v<T, __half>;
  using Two = std::conditional_t<kHalf, __half2, __nv_bfloat162>;

  static __device__ Two value(uint32_t bits) { return *reinterpret_cast<const Two*>(&bits); }
  static __device__ uint32_t bits(Two value) { return *reinterpret_cast<const uint32_t*>(&value); }
  // The weights of operands.
  static __device__ uint4 weights_of(const uint4& v) {
    return {times_unit(v.x), times_unit(v.y), times_unit(v.z), times_unit(v.w)};
  }

 private:
  static __device__ uint32_t times_unit(uint32_t two) {
    if constexpr (kHalf)
      return two;
    else
      return bits(__hmul2(value(two), __float2bfloat162_rn(kUnit)));
  }
};

}  // namespace shoal::ops::cuda
