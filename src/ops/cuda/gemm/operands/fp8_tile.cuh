// Weights of e4m3 (base/e4m3.h) become operands: a lane's eight bytes of a tile (matrix_layout.cuh), as
// load_operand gives them for 16 bits. A weight is its e4m3 number, exact in either dtype, times its output's
// scale, rounded once: the same in every kernel, so that e4m3 weights are 16-bit weights that were rounded
// before.
//
// Bits alone make it, so that no GPU needs conversions of its own: the seven bits of exponent and mantissa at
// the place of the lowest bits of a 16-bit number's exponent and the highest of its mantissa are the e4m3
// number times 2^-120 in bf16, times 2^-8 in f16, denormals included. The scale is kept times the inverse.
#pragma once

#include "ops/cuda/gemm/operands/operand_pair.cuh"

namespace shoal::ops::cuda {

// Twice the scale of an output.
template <typename T>
class Fp8Scale : public OperandPair<T> {
  using Base = OperandPair<T>;
  using Base::bits, Base::kHalf, Base::value;
  using typename Base::Two;

 public:
  static constexpr float kUnit = 1;  // operands are the weights

  Fp8Scale() = default;
  // scale: one that T holds, below 2^8.
  __device__ explicit Fp8Scale(float scale) {
    if constexpr (kHalf)
      factor_ = __float2half2_rn(scale * 0x1p8f);
    else
      factor_ = __float2bfloat162_rn(scale * 0x1p120f);
  }

  __device__ uint4 operand(uint2 bytes) const {
    return {two<0x1800>(bytes.x), two<0x3a22>(bytes.x), two<0x1800>(bytes.y), two<0x3a22>(bytes.y)};
  }
  __device__ uint4 weights(uint2 bytes) const { return operand(bytes); }

 private:
  // kBytes: of a word, as prmt takes them: the second number, the first one's sign in all eight bits, the
  // first number, and one that is masked out. An arithmetic shift then brings both numbers to their places,
  // and copies of their signs to the sign bits.
  template <unsigned kBytes>
  __device__ uint32_t two(uint32_t word) const {
    constexpr int kShift = kHalf ? 1 : 4;
    constexpr uint32_t kPlaces = kHalf ? 0xbf80bf80u : 0x87f087f0u;
    int32_t spread;
    asm("prmt.b32 %0, %1, %1, %2;" : "=r"(spread) : "r"(word), "n"(kBytes));
    return bits(__hmul2(value(static_cast<uint32_t>(spread >> kShift) & kPlaces), factor_));
  }

  Two factor_;
};

}  // namespace shoal::ops::cuda
