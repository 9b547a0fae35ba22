// Attention without tensor cores: a warp per row and query head, a lane per position of a chunk of 32.
#pragma once

#include "ops/cuda/attention/attention_merge.cuh"
#include "ops/cuda/attention/attention_rows.cuh"

namespace shoal::ops::cuda {

constexpr int kLaneChunk = 32;
constexpr int kLaneWarps = 4;

// q . key in four sums: number d % 4 takes the products of dims d by rising d.
template <typename T>
class LaneDot {
 public:
  __device__ void add(float4 q, const T (&key)[4]) {
    add_rest({q.x, q.y}, key[0], key[1]);
    sums_[2] = __fmaf_rn(q.z, widened(key[2]), sums_[2]);
    sums_[3] = __fmaf_rn(q.w, widened(key[3]), sums_[3]);
  }
  // The last two dims of a head of 4 n + 2.
  __device__ void add_rest(float2 q, T x, T y) {
    sums_[0] = __fmaf_rn(q.x, widened(x), sums_[0]);
    sums_[1] = __fmaf_rn(q.y, widened(y), sums_[1]);
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
    return product.sum();
  }
  // Rows that are aligned to pairs only.
  const auto pair = [&](int d) { return *reinterpret_cast<const Pair<T>*>(key + d); };
  int d = 0;
#pragma unroll 4
  for (; d + 4 <= dim; d += 4) {
    const Pair<T> a = pair(d), b = pair(d + 2);
    const T four[4] = {a.x, a.y, b.x, b.y};
    product.add(*reinterpret_cast<const float4*>(q + d), four);
  }
  const Pair<T> rest = pair(d);
  product.add_rest(*reinterpret_cast<const float2*>(q + d), rest.x, rest.y);
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

  ChunkWeights() = default;
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
