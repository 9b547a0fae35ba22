// What attention kernels know of rows, heads and pages, and how a head is normed, turned and rounded.
#pragma once

#include <algorithm>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/cuda/attention/attention_kernels.h"
#include "ops/cuda/rows/kv_heads.cuh"
#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/row_norm.cuh"

namespace shoal::ops::cuda {

// Two neighbours of an array as one access.
template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T x, y;
};

// What pages of P's are multiplied as.
template <typename P>
struct PageFormat {
  using Operand = P;
  static constexpr bool kScaled = false;
};
// Integers of 8 bits with an f16 scale for each token and head (attention_int8.cuh).
template <>
struct PageFormat<uint8_t> {
  using Operand = __half;
  static constexpr bool kScaled = true;
};
template <typename P>
using Operand = typename PageFormat<P>::Operand;

struct Rows {
  const float* qkv;
  int64_t stride;
  const int32_t* offsets;
  const int32_t* positions;
  const int32_t* sequences;
  int count, sequence_count;
  int heads, kv_heads, dim;
  int window;

  __device__ int group() const { return heads / kv_heads; }
  __device__ const float* q(int64_t row, int head) const { return qkv + row * stride + head * dim; }
  __device__ const float* k(int64_t row, int kv_head) const { return q(row, heads + kv_head); }
  __device__ const float* v(int64_t row, int kv_head) const { return q(row, heads + kv_heads + kv_head); }
  __device__ int first_seen(int position) const { return window > 0 ? max(0, position - window + 1) : 0; }
};

struct Out {
  void* data;
  int64_t stride;
  DType dtype;

  __device__ void store(int64_t row, int column, float x, float y) const {
    const int64_t at = row * stride + column;
    if (dtype == DType::f32)
      *reinterpret_cast<float2*>(static_cast<float*>(data) + at) = {x, y};
    else if (dtype == DType::bf16)
      *reinterpret_cast<__nv_bfloat162*>(static_cast<__nv_bfloat16*>(data) + at) =
          __floats2bfloat162_rn(x, y);
    else
      *reinterpret_cast<__half2*>(static_cast<__half*>(data) + at) = __floats2half2_rn(x, y);
  }
  __device__ void store_one(int64_t row, int column, float x) const {
    const int64_t at = row * stride + column;
    if (dtype == DType::f32)
      static_cast<float*>(data)[at] = x;
    else if (dtype == DType::bf16)
      static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(x);
    else
      static_cast<__half*>(data)[at] = __float2half_rn(x);
  }
};

// A head spread over a warp: lane l has pairs l, l + 32, ... and zeros beyond the head.
template <int kPairs>
struct HeadPairs {
  float2 x[kPairs];

  __device__ static int pair(int i) { return static_cast<int>(threadIdx.x % 32) + 32 * i; }

  template <typename T>
  __device__ void load(const T* head, int dim) {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      x[i] = {0, 0};
      if (2 * pair(i) >= dim) continue;
      const Pair<T> two = reinterpret_cast<const Pair<T>*>(head)[pair(i)];
      x[i] = {widened(two.x), widened(two.y)};
    }
  }
  template <typename T>
  __device__ void store(T* head, int dim) const {
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      if (2 * pair(i) < dim)
        reinterpret_cast<Pair<T>*>(head)[pair(i)] = {narrowed_value<T>(x[i].x), narrowed_value<T>(x[i].y)};
  }
  template <typename T>
  __device__ void round() {
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      x[i] = {widened(narrowed_value<T>(x[i].x)), widened(narrowed_value<T>(x[i].y))};
  }

  // x / sqrt(mean(x^2) + eps) * weight. Squares are summed by rising pair in a lane, then over the lanes.
  __device__ void norm(const HeadPairs& weight, int dim, float eps) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) sum = __fmaf_rn(x[i].y, x[i].y, __fmaf_rn(x[i].x, x[i].x, sum));
    const float factor = head_factor(warp_sum(sum), dim, eps);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) x[i] = normed_pair(x[i], factor, weight.x[i]);
  }
  // By the cosines and sines of its position.
  __device__ void rotate(const HeadPairs& turns) {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) x[i] = turned(x[i], turns.x[i]);
  }
  // For a position beyond the table (the caller broke its contract) the last row is used.
  __device__ void load_turns(const HeadTurn& turn, int position, int dim) {
    load(turn.rope + static_cast<int64_t>(min(position, turn.rope_positions - 1)) * dim, dim);
  }
};

// ---- on the host

template <typename T>
Pages<T> pages_of(const AttentionCall& call) {
  const BatchPlan& plan = *call.plan;
  return {static_cast<T*>(call.cache.k.data()),
          static_cast<T*>(call.cache.v.data()),
          static_cast<__half*>(call.cache.k_scales.data()),
          static_cast<__half*>(call.cache.v_scales.data()),
          static_cast<const int32_t*>(plan.tables.page_table.data()),
          static_cast<int>(plan.pages_per_sequence),
          static_cast<int>(plan.page_size),
          static_cast<int>(call.layout.kv_heads),
          reciprocal_of(std::max<int64_t>(1, plan.page_size))};
}

inline Rows rows_of(const AttentionCall& call) {
  const PlanTables& tables = call.plan->tables;
  return {call.qkv.as<float>(),
          call.qkv.stride(0),
          static_cast<const int32_t*>(tables.offsets.data()),
          static_cast<const int32_t*>(tables.positions.data()),
          static_cast<const int32_t*>(tables.sequences.data()),
          static_cast<int>(call.qkv.dim(0)),
          tables.offsets.empty() ? 0 : static_cast<int>(tables.offsets.dim(0) - 1),
          static_cast<int>(call.layout.heads),
          static_cast<int>(call.layout.kv_heads),
          static_cast<int>(call.layout.head_dim),
          static_cast<int>(std::min<int64_t>(call.window, INT32_MAX))};
}

inline Out out_of(const AttentionCall& call) {
  return {call.out.data(), call.out.stride(0), call.out.dtype()};
}

inline HeadTurn turn_of(const AttentionCall& call) {
  return {static_cast<const float*>(call.norm.q.data()), static_cast<const float*>(call.norm.k.data()),
          call.norm.eps, static_cast<const float*>(call.rope.data()),
          call.rope.empty() ? 0 : static_cast<int>(call.rope.dim(0))};
}

// 1 / sqrt(dim) for scores whose exponentials are of base 2.
float score_scale(int64_t dim);

}  // namespace shoal::ops::cuda
