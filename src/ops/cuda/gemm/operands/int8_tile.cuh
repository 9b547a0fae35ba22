// Weights of 8 bits become operands: a lane's eight bytes of a tile (matrix_layout.cuh), as load_operand
// gives them for 16 bits. A weight is its integer, exact in either dtype, times its output's scale, rounded
// once: the same in every kernel, so that 8-bit weights are 16-bit weights that were rounded before.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

// Twice the scale of an output.
template <typename T>
struct TileScale {
  using Two = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  Two two;

  TileScale() = default;
  // scale: one that T holds.
  __device__ explicit TileScale(float scale) {
    if constexpr (std::is_same_v<T, __half>)
      two = __float2half2_rn(scale);
    else
      two = __float2bfloat162_rn(scale);
  }

  // Bytes 2 kPair and 2 kPair + 1 of a word.
  template <int kPair>
  __device__ uint32_t widened(uint32_t word) const {
    constexpr unsigned kBytes = kPair == 0 ? 0x4140 : 0x4342;
    if constexpr (std::is_same_v<T, __half>) {
      // The byte x + 128 below 0x64 is the f16 number 1152 + x.
      const uint32_t offset = __byte_perm(word ^ 0x80808080u, 0x64646464u, kBytes);
      return bits(__hmul2(__hsub2(value(offset), value(0x64806480u)), two));
    } else {
      // Below 0x43, the low seven bits of a byte count from the bf16 number 128; its sign makes 256 of that.
      const uint32_t bytes = __byte_perm(word, 0x43434343u, kBytes);
      return bits(__hmul2(__hsub2(value(bytes & 0xff7fff7fu), value(bytes & 0xff80ff80u)), two));
    }
  }
  __device__ uint4 operand(uint2 bytes) const {
    return {widened<0>(bytes.x), widened<1>(bytes.x), widened<0>(bytes.y), widened<1>(bytes.y)};
  }

 private:
  static __device__ Two value(uint32_t bits) { return *reinterpret_cast<const Two*>(&bits); }
  static __device__ uint32_t bits(Two value) { return *reinterpret_cast<const uint32_t*>(&value); }
};

}  // namespace shoal::ops::cuda
