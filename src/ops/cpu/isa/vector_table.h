// The kernel table of one instruction set: instantiated only by vector_<isa>.cc.
#pragma once

#include "ops/cpu/attention/vector_attention.h"
#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/sampling/vector_race.h"
#include "ops/cpu/sampling/vector_search.h"
#include "ops/cpu/sequence/vector_segments.h"

namespace shoal::ops::cpu {

template <typename V>
constexpr VectorKernels make_vector_kernels() {
  return {
      .snake = Rows<V>::template snake_to<float>,
      .snake_bf16 = Rows<V>::template snake_to<uint16_t>,
      .round_bf16 = Rows<V>::round_bf16,
      .widen_bf16 = Rows<V>::widen_bf16,
      .swiglu = Rows<V>::swiglu,
      .gelu = Rows<V>::gelu,
      .gelu_tanh = Rows<V>::gelu_tanh,
      .exp_nonpositive = Rows<V>::exp_nonpositive,
      .add = Rows<V>::add,
      .divide = Rows<V>::divide,
      .rms_norm = Rows<V>::rms_norm,
      .layer_norm = Rows<V>::layer_norm,
      .finish_rows = Rows<V>::finish_rows,
      .round_i8 = Rows<V>::round_i8,
      .sum_i8 = Rows<V>::sum_i8,
      .rotate_pairs = Rows<V>::rotate_pairs,
      .channel_moments = SegmentRows<V>::channel_moments,
      .norm_rows = SegmentRows<V>::norm_rows,
      .leaky_sum = SegmentRows<V>::template leaky_sum<float>,
      .leaky_sum_bf16 = SegmentRows<V>::template leaky_sum<uint16_t>,
      .double_row = SegmentRows<V>::double_row,
      .attention_chunk = Attention<V>::chunk,
      .attention_merge = Attention<V>::merge,
      .attention_finish = Attention<V>::finish,
      .max = Search<V>::max,
      .softmax_weights = Search<V>::softmax_weights,
      .above = Search<V>::above,
      .narrow = Search<V>::narrow,
      .blocks_at_least = Search<V>::blocks_at_least,
      .race = NoiseRace<V>::run,
      .nearest_codes = Search<V>::nearest_codes,
  };
}

}  // namespace shoal::ops::cpu
