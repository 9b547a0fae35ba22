// How the parts of a softmax are weighed and merged; the same instructions in every attention kernel.
#pragma once

#include <cuda_runtime.h>

namespace shoal::ops::cuda {

// Below every score: the maximum of no keys. Finite, so that differences of it are numbers.
constexpr float kNothing = -0x1p100f;

// 2^x to 2 units in 2^23 (the result is a weight of at most 1, and for 16-bit caches rounded to 8 or 11
// bits).
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float scaled_score(float product, float scale) { return __fmul_rn(product, scale); }

__device__ inline float weight_of(float score, float maximum) { return exp2_fast(__fsub_rn(score, maximum)); }

struct MergeWeights {
  float before, chunk;
};

// Merges a chunk's maximum with that of the chunks before it; returns the weights of both sums. No chunk
// before: 0 and 1. Nothing visible in the chunk: 1 and (of sums that are 0) any.
__device__ inline MergeWeights merge_maximum(float& maximum, float chunk) {
  const float larger = fmaxf(maximum, chunk);
  const MergeWeights weights{weight_of(maximum, larger), weight_of(chunk, larger)};
  maximum = larger;
  return weights;
}

__device__ inline float merged(float before, float chunk, const MergeWeights& weights) {
  return __fmaf_rn(chunk, weights.chunk, __fmul_rn(before, weights.before));
}

// The final factor of a sum of values; 0 for a row without keys (padding).
__device__ inline float share(float sum) { return sum > 0 ? __fdiv_rn(1.0f, sum) : 0.0f; }

}  // namespace shoal::ops::cuda
