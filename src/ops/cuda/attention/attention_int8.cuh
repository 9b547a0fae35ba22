// Keys and values of 8 bits: a head of a token is integers of -127 .. 127, of which a GPU's pages hold the
// bytes integer + 128, and one f16 scale.
//
// Tensor cores multiply these bytes as they are: below a zero byte each is the f16 number byte x 2^-24, since
// subnormal numbers lie evenly. What 128 is too much is taken off the sums:
//   score = key scale x 2^24 x (sum of q byte 2^-24 - 2^-17 sum of q)
//   value = 2^24 x (sum of w byte 2^-24 - 2^-17 sum of w), w = weight x value scale
// w is rounded to f16, so the largest w of a chunk is to be 1, not its largest weight: a chunk's maximum is
// that of score + log2(value scale), by which weights may be any number. Sums of weights are kept times
// 2^-24, as those of values are.
#pragma once

#include "ops/cuda/attention/attention_tiles.cuh"

namespace shoal::ops::cuda {

// ---- to 8 bits

__device__ inline float larger_or_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

// Replaces a head by its integers + 128 and returns their scale, the largest magnitude / 127 in f16. A head
// that is not finite gets a scale that is not finite either.
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
  const auto rounded = [&](float x) {
    return rintf(fminf(fmaxf(__fmul_rn(x, inverse), -127.0f), 127.0f)) + 128.0f;
  };
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

constexpr float kByteUnit = 0x1p-24f, kByteOffset = 128 * kByteUnit;

// Four bytes as two pairs of f16, times kByteUnit: those that the selectors name.
template <unsigned kFirst, unsigned kSecond>
__device__ void widen_bytes(uint32_t bytes, uint32_t& first, uint32_t& second) {
  first = __byte_perm(bytes, 0, kFirst);
  second = __byte_perm(bytes, 0, kSecond);
}

// Of a position: what a product of its key's bytes is multiplied by, and the base-2 logarithm of its value's
// scale (of the smallest f16 if that is 0: all integers are then, too).
struct alignas(8) PositionTerms {
  float key, value;
};
__device__ inline PositionTerms terms_of(__half key_scale, __half value_scale, float score_scale) {
  return {__fmul_rn(__half2float(key_scale), score_scale / kByteUnit),
          __log2f(larger_or_nan(__half2float(value_scale), kByteUnit))};
}

// Dims 16 step .. + 15 of keys first_key .. + 15, and of sixteen or eight queries to multiply them with: as
// load_keys and load_left for 16 bits, but the four dims of a lane are neighbours.
template <int kDim>
__device__ void load_key_bytes(uint32_t (&b)[4], const uint8_t* keys, int first_key, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint8_t* const row = keys + Swizzle<kDim, uint8_t>::at(first_key + lane / 4, 0) + lane % 4 * 4;
  const SharedAddress four = at_vector(shared_address(row), step);
#pragma unroll
  for (int half = 0; half < 2; ++half)  // eight rows on, vectors are permuted alike
    widen_bytes<0x4140, 0x4342>(load_word(four + half * 8 * kDim), b[2 * half], b[2 * half + 1]);
}
template <int kDim, int kRegisters>
__device__ void load_left_fours(uint32_t (&a)[kRegisters], const __half* queries, int first_row, int step) {
  constexpr int kEights = kRegisters / 2;
  const int lane = static_cast<int>(threadIdx.x % 32), quarter = lane % 4;
#pragma unroll
  for (int eight = 0; eight < kEights; ++eight) {
    const __half* const vector =
        queries + Swizzle<kDim>::at(first_row + 8 * eight + lane / 4, 2 * step + quarter / 2);
    const uint2 four = *reinterpret_cast<const uint2*>(vector + quarter % 2 * 4);
    a[eight] = four.x;
    a[kEights + eight] = four.y;
  }
}

// As load_values for 16 bits; but the first eight columns are the even dims, the others the odd ones.
template <int kDim>
__device__ void load_value_bytes(uint32_t (&b)[4], const uint8_t* values, int first_dim, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  uint32_t bytes[2];
  const SharedAddress row = shared_address(values + Swizzle<kDim, uint8_t>::at(lane % 16, 0));
  load_two_matrices_transposed(bytes, at_vector(row, first_dim / 16) + step * 16 * kDim);
#pragma unroll
  for (int half = 0; half < 2; ++half) widen_bytes<0x4240, 0x4341>(bytes[half], b[half], b[2 + half]);
}
// Of two steps at once.
template <int kDim>
__device__ void load_value_bytes(uint32_t (&b)[2][4], const uint8_t* values, int first_dim, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  uint32_t bytes[4];
  const SharedAddress row = shared_address(values + Swizzle<kDim, uint8_t>::at(lane, 0));
  load_matrices_transposed(bytes, at_vector(row, first_dim / 16) + step * 16 * kDim);
#pragma unroll
  for (int i = 0; i < 4; ++i) widen_bytes<0x4240, 0x4341>(bytes[i], b[i / 2][i % 2], b[i / 2][2 + i % 2]);
}

// ---- for pages of any format

template <int kDim, typename P>
__device__ void load_page_keys(uint32_t (&b)[4], const P* keys, int first_key, int step) {
  if constexpr (PageFormat<P>::kScaled)
    load_key_bytes<kDim>(b, keys, first_key, step);
  else
    load_keys<kDim>(b, keys, first_key, step);
}
// The same as a left operand.
template <int kDim, typename P>
__device__ void load_left_keys(uint32_t (&a)[4], const P* keys, int first_key, int step) {
  if constexpr (PageFormat<P>::kScaled) {
    uint32_t b[4];
    load_key_bytes<kDim>(b, keys, first_key, step);
    a[0] = b[0], a[1] = b[2], a[2] = b[1], a[3] = b[3];
  } else {
    load_left<kDim>(a, keys, first_key, step);
  }
}
template <int kDim, typename P>
__device__ void load_queries(uint32_t (&a)[4], const Operand<P>* queries, int first_row, int step) {
  if constexpr (PageFormat<P>::kScaled)
    load_left_fours<kDim>(a, queries, first_row, step);
  else
    load_left<kDim>(a, queries, first_row, step);
}
template <int kDim, typename P>
__device__ void load_right_queries(uint32_t (&a)[2], const Operand<P>* queries, int step) {
  if constexpr (PageFormat<P>::kScaled)
    load_left_fours<kDim>(a, queries, 0, step);
  else
    load_right<kDim>(a, queries, step);
}
template <int kDim, typename P>
__device__ void load_page_values(uint32_t (&b)[4], const P* values, int first_dim, int step) {
  if constexpr (PageFormat<P>::kScaled)
    load_value_bytes<kDim>(b, values, first_dim, step);
  else
    load_values<kDim>(b, values, first_dim, step);
}
// Of steps `step` and `step` + 1, as left operands: the dims are their rows.
template <int kDim, typename P>
__device__ void load_left_values(uint32_t (&a)[2][4], const P* values, int first_dim, int step) {
  uint32_t b[2][4];
  if constexpr (PageFormat<P>::kScaled)
    load_value_bytes<kDim>(b, values, first_dim, step);
  else
    load_values<kDim>(b[0], values, first_dim, step), load_values<kDim>(b[1], values, first_dim, step + 1);
#pragma unroll
  for (int i = 0; i < 2; ++i) a[i][0] = b[i][0], a[i][1] = b[i][2], a[i][2] = b[i][1], a[i][3] = b[i][3];
}

// What is added to products of bytes with two rows (see above).
struct ByteOffset {
  float of_row[2] = {};

  ByteOffset() = default;
  // sums: of the rows.
  __device__ explicit ByteOffset(const float (&sums)[2])
      : of_row{-kByteOffset * sums[0], -kByteOffset * sums[1]} {}
};

// The sum of a row's weights over a chunk, of those of its four sixteens.
__device__ inline float sum_of_chunk(float first, float second, float third, float fourth) {
  return kByteUnit * __fadd_rn(__fadd_rn(first, second), __fadd_rn(third, fourth));
}

}  // namespace shoal::ops::cuda
