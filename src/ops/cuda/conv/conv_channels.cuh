// Eight neighbouring channels of a row: what one thread takes on its way into a convolution.
#pragma once

#include <cstdint>

#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/snake.cuh"

namespace shoal::ops::cuda {

constexpr int kEight = 8;

struct EightFloats {
  float v[kEight];
};

// Channels c .. c + 7 of a row; zeros for those that do not exist.
__device__ inline EightFloats load_eight(const float* row, int c, int channels, bool vectors) {
  EightFloats eight;
  if (vectors && c + kEight <= channels) {
    const float4 low = *reinterpret_cast<const float4*>(row + c);
    const float4 high = *reinterpret_cast<const float4*>(row + c + 4);
    eight = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  } else {
#pragma unroll
    for (int i = 0; i < kEight; ++i) eight.v[i] = c + i < channels ? row[c + i] : 0.0f;
  }
  return eight;
}

__device__ inline void store_eight(float* row, int c, int channels, bool vectors, const EightFloats& eight) {
  const float* v = eight.v;
  if (vectors && c + kEight <= channels) {
    *reinterpret_cast<float4*>(row + c) = make_float4(v[0], v[1], v[2], v[3]);
    *reinterpret_cast<float4*>(row + c + 4) = make_float4(v[4], v[5], v[6], v[7]);
  } else {
#pragma unroll
    for (int i = 0; i < kEight; ++i)
      if (c + i < channels) row[c + i] = v[i];
  }
}

// The factors of a thread's channels.  kNear: for what is rounded to 16 bits.
template <bool kNear>
struct EightSnakes {
  EightFloats alpha, inverse;

  __device__ EightSnakes(const float* alphas, int c, int channels, bool vectors) {
    alpha = load_eight(alphas, c, channels, vectors);
#pragma unroll
    for (int i = 0; i < kEight; ++i) inverse.v[i] = snake_inverse(alpha.v[i]);
  }
  __device__ EightFloats operator()(const EightFloats& x) const {
    EightFloats y;
#pragma unroll
    for (int i = 0; i < kEight; ++i)
      y.v[i] = kNear ? near_snake(x.v[i], alpha.v[i], inverse.v[i])
                     : snake_value(x.v[i], alpha.v[i], inverse.v[i]);
    return y;
  }
};

template <typename T>
__device__ inline uint4 rounded_eight(const EightFloats& eight) {
  struct alignas(16) {
    T v[kEight];
  } packed;
#pragma unroll
  for (int i = 0; i < kEight; ++i) packed.v[i] = narrowed_value<T>(eight.v[i]);
  return *reinterpret_cast<const uint4*>(&packed);
}

// Values of a ready row (of f32 there is none, but kernels that ask are compiled).
template <typename T>
__device__ inline EightFloats widened_eight(const T* from) {
  EightFloats eight;
#pragma unroll
  for (int i = 0; i < kEight; ++i) eight.v[i] = widened(from[i]);
  return eight;
}

}  // namespace shoal::ops::cuda
