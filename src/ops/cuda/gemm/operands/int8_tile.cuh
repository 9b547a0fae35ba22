// Weights of 8 bits become operands: a lane's eight bytes of a tile (matrix_layout.cuh), as load_operand
// gives them for 16 bits. A weight is its integer, exact in either dtype, times its output's scale, rounded
// once: the same in every kernel, so that 8-bit weights are 16-bit weights that were rounded before.
//
// A byte holds the integer + 128, of which operand_pair.cuh says how it becomes a weight.
#pragma once

#include "ops/cuda/gemm/operands/operand_pair.cuh"

namespace shoal::ops::cuda {

// Twice the scale of an output.
template <typename T>
class TileScale : public OperandPair<T> {
  using Base = OperandPair<T>;
  using Base::bits, Base::kHalf, Base::value;
  using typename Base::Two;

 public:
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
  __device__ uint4 weights(uint2 bytes) const { return Base::weights_of(operand(bytes)); }

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

  Two factor_;
  Two zero_;  // minus the weight of 128, which the integer 0 is kept as
};

}  // namespace shoal::ops::cuda
