// Keys and values of 8 bits: a head of a token is integers of -127 .. 127 and one f16 scale. Tensor cores
// multiply them as f16, which holds such integers exactly. A score is multiplied by its key's scale in f32; a
// value by its scale in f16.
#pragma once

#include "ops/cuda/attention/attention_tiles.cuh"

namespace shoal::ops::cuda {

// ---- to 8 bits

__device__ inline float larger_or_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

// Replaces a head by its integers and returns their scale, the largest magnitude / 127 in f16. A head that is
// not finite gets a scale that is not finite either.
template <int kPairs>
__device__ __half quantise(HeadPairs<kPairs>& head) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kPairs; ++i)
    largest = larger_or_nan(largest, larger_or_nan(fabsf(head.x[i].x), fabsf(head.x[i].y)));
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    largest = larger_or_nan(largest, __shfl_xor_sync(~0u, largest, distance));
  const __half scale = __float2half_rn(__fmul_rn(largest, 1.0f / 127.0f));
  const float step = __half2float(scale), inverse = step > 0 ? __fdiv_rn(1.0f, step) : 0.0f;
  const auto rounded = [&](float x) { return rintf(fminf(fmaxf(__fmul_rn(x, inverse), -127.0f), 127.0f)); };
#pragma unroll
  for (int i = 0; i < kPairs; ++i) head.x[i] = {rounded(head.x[i].x), rounded(head.x[i].y)};
  return scale;
}

// ---- tiles of 8 bits

__device__ inline uint32_t load_word(SharedAddress at) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");
  return word;
}

// Four integers as two pairs of f16: those of the bytes that the selectors name.
template <unsigned kFirst, unsigned kSecond>
__device__ void widen_bytes(uint32_t bytes, uint32_t& first, uint32_t& second) {
  // The byte x + 128 below 0x64 is the f16 number 1024 + 128 + x.
  const uint32_t shifted = bytes ^ 0x80808080u, offset = 0x64806480u;
  const auto minus_offset = [&](uint32_t pair) {
    const __half2 value =
        __hsub2(*reinterpret_cast<const __half2*>(&pair), *reinterpret_cast<const __half2*>(&offset));
    return *reinterpret_cast<const uint32_t*>(&value);
  };
  first = minus_offset(__byte_perm(shifted, 0x64646464u, kFirst));
  second = minus_offset(__byte_perm(shifted, 0x64646464u, kSecond));
}

__device__ inline uint32_t times(uint32_t pair, __half2 scales) {
  const __half2 product = __hmul2(*reinterpret_cast<const __half2*>(&pair), scales);
  return *reinterpret_cast<const uint32_t*>(&product);
}

// Dims 16 step .. + 15 of keys first_key .. + 15, and of sixteen queries to multiply them with: as load_keys
// and load_left for 16 bits, but the four dims of a lane are neighbours.
template <int kDim>
__device__ void load_key_bytes(uint32_t (&b)[4], const int8_t* keys, int first_key, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int8_t* const row = keys + Swizzle<kDim, int8_t>::at(first_key + lane / 4, 0) + lane % 4 * 4;
  const SharedAddress four = at_vector(shared_address(row), step);
#pragma unroll
  for (int half = 0; half < 2; ++half)  // eight rows on, vectors are permuted alike
    widen_bytes<0x4140, 0x4342>(load_word(four + half * 8 * kDim), b[2 * half], b[2 * half + 1]);
}
template <int kDim>
__device__ void load_left_fours(uint32_t (&a)[4], const __half* queries, int first_row, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32), quarter = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const __half* const vector =
        queries + Swizzle<kDim>::at(first_row + 8 * half + lane / 4, 2 * step + quarter / 2);
    const uint2 four = *reinterpret_cast<const uint2*>(vector + quarter % 2 * 4);
    a[half] = four.x;
    a[2 + half] = four.y;
  }
}

// As load_values for 16 bits, of values times their scales; but the first eight columns are the even dims,
// the others the odd ones. scales: of the chunk's positions.
template <int kDim>
__device__ void load_value_bytes(uint32_t (&b)[4], const int8_t* values, const __half* scales, int first_dim,
                                 int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  uint32_t bytes[2];
  const SharedAddress row = shared_address(values + Swizzle<kDim, int8_t>::at(lane % 16, 0));
  load_two_matrices_transposed(bytes, at_vector(row, first_dim / 16) + step * 16 * kDim);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const __half2 two = *reinterpret_cast<const __half2*>(scales + step * 16 + 8 * half + lane % 4 * 2);
    widen_bytes<0x4240, 0x4341>(bytes[half], b[half], b[2 + half]);
    b[half] = times(b[half], two);
    b[2 + half] = times(b[2 + half], two);
  }
}

// ---- for pages of any format

// A chunk's values; scales only where the format has some.
template <typename P>
struct ValueTile {
  const P* values;
  const __half* scales;
};

template <int kDim, typename P>
__device__ void load_page_keys(uint32_t (&b)[4], const P* keys, int first_key, int step) {
  if constexpr (PageFormat<P>::kScaled)
    load_key_bytes<kDim>(b, keys, first_key, step);
  else
    load_keys<kDim>(b, keys, first_key, step);
}
template <int kDim, typename P>
__device__ void load_queries(uint32_t (&a)[4], const Operand<P>* queries, int first_row, int step) {
  if constexpr (PageFormat<P>::kScaled)
    load_left_fours<kDim>(a, queries, first_row, step);
  else
    load_left<kDim>(a, queries, first_row, step);
}
template <int kDim, typename P>
__device__ void load_page_values(uint32_t (&b)[4], const ValueTile<P>& tile, int first_dim, int step) {
  if constexpr (PageFormat<P>::kScaled)
    load_value_bytes<kDim>(b, tile.values, tile.scales, first_dim, step);
  else
    load_values<kDim>(b, tile.values, first_dim, step);
}

// Sums of values by tiles of eight columns, as load_page_values gave them, to tiles whose columns 2 (lane %
// 4) and the next are the dims lane_dim and the next.
template <typename P, int kTiles>
__device__ void arrange(float (&sums)[kTiles][4]) {
  if constexpr (PageFormat<P>::kScaled) {
#pragma unroll
    for (int n = 0; n < kTiles; n += 2)
#pragma unroll
      for (int r = 0; r < 4; r += 2) {
        const float even = sums[n][r + 1];
        sums[n][r + 1] = sums[n + 1][r];
        sums[n + 1][r] = even;
      }
  }
}
// The first of this lane's two dims of tile n.
template <typename P>
__device__ int lane_dim(int n) {
  const int quarter = static_cast<int>(threadIdx.x % 4);
  return PageFormat<P>::kScaled ? n / 2 * 16 + quarter * 4 + n % 2 * 2 : n * 8 + quarter * 2;
}

}  // namespace shoal::ops::cuda
