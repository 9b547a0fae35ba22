// Attention without tensor cores: a warp per row and query head, a lane per position of a chunk of 32.
#pragma once

#include "ops/cuda/attention_merge.cuh"
#include "ops/cuda/attention_rows.cuh"

namespace shoal::ops::cuda {

constexpr int kLaneChunk = 32;
constexpr int kLaneWarps = 4;

// q . key in four sums: number d % 4 takes the products of dims d by rising d.
template <typename T>
class LaneDot {
 public:
  __device__ void add(float4 q, const T (&key)[4]) {
    add(float2{q.x, q.y}, key[0], key[1], 0);
    add(float2{q.z, q.w}, key[2], key[3], 2);
  }
  // dims d, d + 1 with d % 4 == at
  __device__ void add(float2 q, T x, T y, int at) {
    sums_[at] = __fmaf_rn(q.x, widened(x), sums_[at]);
    sums_[at + 1] = __fmaf_rn(q.y, widened(y), sums_[at + 1]);
  }
  __device__ float sum() const {
    return __fadd_rn(__fadd_rn(sums_[0], sums_[1]), __fadd_rn(sums_[2], sums_[3]));
  }

 private:
  float sums_[4] = {};
};

template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T x[4];
};

template <typename T>
__device__ float dot(const float* q, const T* key, int dim) {
  LaneDot<T> product;
  if (dim % 4 == 0) {
#pragma unroll 8
    for (int d = 0; d < dim; d += 4)
      product.add(*reinterpret_cast<const float4*>(q + d), reinterpret_cast<const Four<T>*>(key + d)->x);
  } else {
#pragma unroll 8
    for (int d = 0; d < dim; d += 2) {
      const Pair<T> two = *reinterpret_cast<const Pair<T>*>(key + d);
      product.add(*reinterpret_cast<const float2*>(q + d), two.x, two.y, d % 4);
    }
  }
  return product.sum();
}

__device__ inline float warp_max(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

// The softmax of a chunk's scores, a lane each.
struct ChunkWeights {
  float maximum, weight, sum;

  __device__ ChunkWeights(float score, bool seen) {
    maximum = warp_max(seen ? score : kNothing);
    weight = seen ? weight_of(score, maximum) : 0.0f;
    sum = warp_sum(weight);
  }
};

// The running softmax of a head whose dims are spread over the warp.
template <int kPairs>
struct LaneSums {
  float maximum = kNothing, sum = 0;
  HeadPairs<kPairs> values{};

  __device__ void merge(const ChunkWeights& chunk, const HeadPairs<kPairs>& chunk_values) {
    const MergeWeights weights = merge_maximum(maximum, chunk.maximum);
    sum = merged(sum, chunk.sum, weights);
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      values.x[i] = {merged(values.x[i].x, chunk_values.x[i].x, weights),
                     merged(values.x[i].y, chunk_values.x[i].y, weights)};
  }
  __device__ void store(const Out& out, int64_t row, int column, int dim) const {
    const float factor = share(sum);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int pair = HeadPairs<kPairs>::pair(i);
      if (2 * pair < dim) out.store(row, column + 2 * pair, values.x[i].x * factor, values.x[i].y * factor);
    }
  }
};

// sums += weight * value
template <int kPairs>
__device__ void add_value(HeadPairs<kPairs>& sums, float weight, const HeadPairs<kPairs>& value) {
#pragma unroll
  for (int i = 0; i < kPairs; ++i)
    sums.x[i] = {__fmaf_rn(weight, value.x[i].x, sums.x[i].x), __fmaf_rn(weight, value.x[i].y, sums.x[i].y)};
}

}  // namespace shoal::ops::cuda
