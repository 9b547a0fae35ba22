// Weights of 4 bits become operands: a lane's four bytes of a tile, as load_operand gives them for 16 bits. A
// weight is its integer, exact in either dtype, times the scale of its group plus its minimum, rounded once:
// the same in every kernel, so that 4-bit weights are 16-bit weights that were rounded before.
//
// Lane 4 n + q of a warp has the word of output n: its bits 4 c hold input 8 c + 2 q, its bits 16 + 4 c the
// next one (c = 0 .. 3), so that a shift and a mask put two integers below each other's zeros
// (operand_pair.cuh). The numbers in a record's head are made for that, too: the scale is kept times 2^112,
// the minimum times 2^-21.
#pragma once

#include "ops/cuda/gemm/operands/operand_pair.cuh"

namespace shoal::ops::cuda {

// Scale and minimum of an output's group.
template <typename T>
class NibbleScale : public OperandPair<T> {
  using Base = OperandPair<T>;
  using Base::bits, Base::kHalf, Base::value;
  using typename Base::Two;

 public:
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
  __device__ uint4 weights(uint32_t word) const { return Base::weights_of(operand(word)); }

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

  Two scale_, minimum_;
};

}  // namespace shoal::ops::cuda
