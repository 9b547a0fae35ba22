// Heads of queries, keys and values on their way from a product to attention: how they are normed and turned,
// and where keys and values lie in pages.
#pragma once

#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace shoal::ops::cuda {

// The positions of the sequences in the batch.
template <typename P>
struct Pages {
  P* k;
  P* v;
  __half* k_scales;  // by slot; null without scales
  __half* v_scales;
  const int32_t* table;  // [sequences, per_sequence]
  int per_sequence, page_size, kv_heads;
  unsigned reciprocal;  // reciprocal_of(page_size)

  __device__ int positions() const { return per_sequence * page_size; }
  // position / page_size. A division takes more instructions than a fragment's conversion.
  __device__ int page_index(int position) const {
    return static_cast<int>(static_cast<uint64_t>(static_cast<unsigned>(position)) * reciprocal >> 31);
  }
  __device__ int page_of(int sequence, int position) const {
    return table[static_cast<int64_t>(sequence) * per_sequence + page_index(position)];
  }
  // For look-ups ahead of knowing the position: of the nearest position that has a page; 0 when none has.
  __device__ int page_near(int sequence, int position) const {
    return positions() > 0 ? page_of(sequence, min(position, positions() - 1)) : 0;
  }
  // The row of head_dim values in k and v, counted in rows; also the place of its scale.
  __device__ int slot(int page, int kv_head, int position) const {
    return (page * kv_heads + kv_head) * page_size + (position - page_index(position) * page_size);
  }
};

struct HeadTurn {
  const float* q_weight;  // null: no norm
  const float* k_weight;
  float eps;
  const float* rope;  // [positions, dim / 2, 2]
  int rope_positions;
};

// 1 / sqrt(mean + eps), of the sum of a head's squares.
__device__ inline float head_factor(float squares, int dim, float eps) {
  const float mean = __fdiv_rn(squares, static_cast<float>(dim));
  return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, eps)));
}
__device__ inline float2 normed_pair(float2 x, float factor, float2 weight) {
  return {__fmul_rn(__fmul_rn(x.x, factor), weight.x), __fmul_rn(__fmul_rn(x.y, factor), weight.y)};
}
// By the cosine and the sine of its position.
__device__ inline float2 turned(float2 x, float2 turn) {
  return {__fmaf_rn(x.x, turn.x, -__fmul_rn(x.y, turn.y)), __fmaf_rn(x.y, turn.x, __fmul_rn(x.x, turn.y))};
}

// ---- on the host

// 2^31 / size, rounded up: position * reciprocal >> 31 is position / size for positions below 2^31 / size.
inline unsigned reciprocal_of(int64_t size) {
  return static_cast<unsigned>(((int64_t{1} << 31) + size - 1) / size);
}

}  // namespace shoal::ops::cuda
