// Attention of a block of queries over one chunk of keys (at most 128 positions): scores, softmax, weighted
// sum.
//
// Per query, whatever the block:  score[k] = scale * (q0 k0 + q1 k1 + ..., one chain of fma in order of d);
// m = max; w[k] = exp(score[k] - m); their sum in 16 lanes (lane = k mod 16) and the tree of Vector16::sum;
// result[d] = w0 v0[d] + w1 v1[d] + ..., one chain of fma in order of k. Chunks are merged in order. Of rows
// with scales the integers are multiplied: then score[k] is multiplied by its key's scale, and in the sum of
// values, but not in that of weights, w[k] by its value's.
#pragma once

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/vector_rows.h"

namespace shoal::ops::cpu {

template <typename V>
struct Attention {
  static int smaller(int a, int b) { return a < b ? a : b; }
  static int larger(int a, int b) { return a > b ? a : b; }

  // use(pointer to the elements of a row): the one place that turns a KvRow into a type.
  template <typename Use>
  static void with_row_type(KvRow row, Use use) {
    switch (row) {
      case KvRow::f32:
        return use(static_cast<const float*>(nullptr));
      case KvRow::bf16:
        return use(static_cast<const uint16_t*>(nullptr));
      case KvRow::i8:
        return use(static_cast<const int8_t*>(nullptr));
    }
  }

  static void chunk(const AttentionChunk& c) {
    const int64_t padded = (c.head_dim + 15) / 16 * 16;
    float* block = c.scratch;                           // two of [head_dim, 16 keys]
    float* values = block + padded * 32;                // [chunk, padded]
    float* scores = values + padded * kAttentionChunk;  // [queries, chunk]
    int begin = c.begin[0], end = c.end[0];
    for (int i = 1; i < c.query_count; ++i) {
      begin = smaller(begin, c.begin[i]);
      end = larger(end, c.end[i]);
    }
    int first = begin / 16 * 16;
    if (c.query_count == 2) {  // as in decoding: two chains are not enough to keep the units busy
      for (; first + 16 < end; first += 32) {
        transpose_keys(c, first, begin, end, block);
        transpose_keys(c, first + 16, begin, end, block + padded * 16);
        score<2, 2>(c, 0, block, key_scales_at(c, first), scores + first);
      }
    }
    for (; first < end; first += 16) {
      transpose_keys(c, first, begin, end, block);
      score_block(c, block, key_scales_at(c, first), scores + first);
    }
    for (int i = 0; i < c.query_count; ++i) softmax(c, i, scores + i * kAttentionChunk);
    with_row_type(c.row, [&](const auto* type) {
      // Many queries read values again and again: 16 bits are widened once.
      const bool is_wide = sizeof(*type) == sizeof(float);
      if (c.head_dim % 16 == 0 && (is_wide || c.query_count <= V::kQueries))
        weigh(c, type, c.values, scores);
      else
        weigh_widened(c, type, begin, end, values, scores);
    });
  }

  static void merge(const float* part, float* sum, int head_dim) {
    const float m_part = part[head_dim], m_sum = sum[head_dim];
    const V m = V::all(m_part > m_sum ? m_part : m_sum);
    const V a = cpu::exp_nonpositive(V::all(m_sum) - m), b = cpu::exp_nonpositive(V::all(m_part) - m);
    Rows<V>::pieces(head_dim, [=](int64_t i, int count) {
      const V merged = V::fma(Rows<V>::load(part + i, count), b, Rows<V>::load(sum + i, count) * a);
      Rows<V>::store(merged, sum + i, count);
    });
    m.store(sum + head_dim, 1);
    V::fma(V::all(part[head_dim + 1]), b, V::all(sum[head_dim + 1]) * a).store(sum + head_dim + 1, 1);
  }

  static void finish(const float* sum, float* out, int head_dim) {
    const V total = V::all(sum[head_dim + 1]);
    Rows<V>::pieces(head_dim, [=](int64_t i, int count) {
      Rows<V>::store(Rows<V>::load(sum + i, count) / total, out + i, count);
    });
  }

 private:
  // Rows outside [begin, end) need not exist: existing rows are read instead.
  static void transpose_keys(const AttentionChunk& c, int first, int begin, int end, float* block) {
    const void* rows[16];
    for (int i = 0; i < 16; ++i) rows[i] = c.keys[smaller(larger(first + i, begin), end - 1)];
    with_row_type(c.row, [&](const auto* type) { transpose_rows(type, rows, c.head_dim, block); });
  }

  // Whole squares are stored to scratch that is padded for them; the last one takes its stray columns along.
  template <typename T>
  static void transpose_rows(const T*, const void* const* rows, int head_dim, float* block) {
    int d = 0;
    if constexpr (sizeof(T) == 2)
      for (; d + 32 <= head_dim; d += 32) transpose_pairs(rows, d, block + d * 16);
    for (; d < head_dim; d += 16) {
      const int width = smaller(16, head_dim - d);
      V columns[16];
      for (int i = 0; i < 16; ++i) columns[i] = Rows<V>::load(static_cast<const T*>(rows[i]) + d, width);
      V::transpose(columns);
      for (int i = 0; i < 16; ++i) columns[i].store(block + (d + i) * 16);
    }
  }

  // Two neighbouring columns move as one and are widened behind: a square for 32 of them.
  static void transpose_pairs(const void* const* rows, int d, float* block) {
    V pairs[16];
    for (int i = 0; i < 16; ++i) pairs[i] = V::load_bf16_pairs(static_cast<const uint16_t*>(rows[i]) + d);
    V::transpose(pairs);
    for (int i = 0; i < 16; ++i) {
      V::first_of_bf16_pairs(pairs[i]).store(block + i * 32);
      V::second_of_bf16_pairs(pairs[i]).store(block + i * 32 + 16);
    }
  }

  static const float* key_scales_at(const AttentionChunk& c, int first) {
    return c.key_scales ? c.key_scales + first : nullptr;
  }

  static void score_block(const AttentionChunk& c, const float* block, const float* key_scales,
                          float* scores) {
    int i = 0;
    for (; i + V::kQueries <= c.query_count; i += V::kQueries)
      score<V::kQueries, 1>(c, i, block, key_scales, scores);
    if constexpr (V::kQueries > 4)
      for (; i + 4 <= c.query_count; i += 4) score<4, 1>(c, i, block, key_scales, scores);
    for (; i + 2 <= c.query_count; i += 2) score<2, 1>(c, i, block, key_scales, scores);
    if (i < c.query_count) score<1, 1>(c, i, block, key_scales, scores);
  }

  template <int kCount, int kBlocks>
  static void score(const AttentionChunk& c, int first, const float* block, const float* key_scales,
                    float* scores) {
    const int head_dim = c.head_dim, next = (head_dim + 15) / 16 * 16 * 16;
    const float* q[kCount];
    V sum[kCount][kBlocks];
    for (int i = 0; i < kCount; ++i) {
      q[i] = c.queries[first + i];
      for (int b = 0; b < kBlocks; ++b) sum[i][b] = V::zero();
    }
    for (int d = 0; d < head_dim; ++d)
      for (int b = 0; b < kBlocks; ++b) {
        const V key = V::load(block + b * next + d * 16);
        for (int i = 0; i < kCount; ++i) sum[i][b] = V::fma(V::all(q[i][d]), key, sum[i][b]);
      }
    const V scale = V::all(c.scale);
    for (int b = 0; b < kBlocks; ++b) {
      for (int i = 0; i < kCount; ++i) sum[i][b] = sum[i][b] * scale;
      if (key_scales)
        for (int i = 0; i < kCount; ++i) sum[i][b] = sum[i][b] * V::load(key_scales + 16 * b);
      for (int i = 0; i < kCount; ++i) sum[i][b].store(scores + (first + i) * kAttentionChunk + 16 * b);
    }
  }

  // Scores -> weights; lanes that the query does not see become 0.
  static void softmax(const AttentionChunk& c, int query, float* scores) {
    const int begin = c.begin[query], end = c.end[query];
    const int from = begin / 16 * 16;
    const V lowest = V::all(-__builtin_inff());
    V best = lowest;
    for (int k = from; k < end; k += 16)
      best = V::max(V::select(V::between(begin - k, end - k), V::load(scores + k), lowest), best);
    float lanes[16];
    best.store(lanes);
    float largest = lanes[0];
    for (int i = 1; i < 16; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
    V sum = V::zero();
    for (int k = from; k < end; k += 16) {
      const V w = cpu::exp_nonpositive(V::load(scores + k) - V::all(largest));
      const V seen = V::select(V::between(begin - k, end - k), w, V::zero());
      (c.value_scales ? seen * V::load(c.value_scales + k) : seen).store(scores + k);
      sum = sum + seen;
    }
    float* result = c.result[query];
    result[c.head_dim] = largest;
    result[c.head_dim + 1] = V::sum(sum);
  }

  // widened: [kAttentionChunk, head_dim padded to 16].
  template <typename T>
  static void weigh_widened(const AttentionChunk& c, const T*, int begin, int end, float* widened,
                            const float* weights) {
    const int64_t padded = (c.head_dim + 15) / 16 * 16;
    const void* rows[kAttentionChunk];
    for (int k = begin; k < end; ++k) {
      const T* const from = static_cast<const T*>(c.values[k]);
      float* const row = widened + k * padded;
      rows[k] = row;
      for (int64_t d = 0; d < padded; d += 16)
        Rows<V>::load(from + d, smaller(16, c.head_dim - static_cast<int>(d))).store(row + d);
    }
    weigh(c, static_cast<const float*>(nullptr), rows, weights);
  }

  template <typename T>
  static void weigh(const AttentionChunk& c, const T*, const void* const* rows, const float* weights) {
    constexpr int kBlock = V::kQueries > 4 ? 4 : 2;
    int i = 0;
    for (; i + kBlock <= c.query_count; i += kBlock) weigh_queries<T, kBlock>(c, rows, weights, i);
    if constexpr (kBlock > 2)
      for (; i + 2 <= c.query_count; i += 2) weigh_queries<T, 2>(c, rows, weights, i);
    for (; i < c.query_count; ++i) weigh_queries<T, 1>(c, rows, weights, i);
  }

  template <typename T, int kCount>
  static void weigh_queries(const AttentionChunk& c, const void* const* rows, const float* weights,
                            int first) {
    int d = 0;
    for (; d + 16 * V::kColumns <= c.head_dim; d += 16 * V::kColumns)
      weigh_columns<T, kCount, V::kColumns>(c, rows, weights, first, d);
    for (; d < c.head_dim; d += 16) weigh_columns<T, kCount, 1>(c, rows, weights, first, d);
  }

  template <typename T, int kCount, int kColumns>
  static void weigh_columns(const AttentionChunk& c, const void* const* rows, const float* weights, int first,
                            int d) {
    V sum[kCount][kColumns];
    const float* w[kCount];
    int begin = 0, end = kAttentionChunk;  // rows that all of these queries see
    for (int i = 0; i < kCount; ++i) {
      w[i] = weights + (first + i) * kAttentionChunk;
      begin = larger(begin, c.begin[first + i]);
      end = smaller(end, c.end[first + i]);
      for (int j = 0; j < kColumns; ++j) sum[i][j] = V::zero();
    }
    if (end < begin) end = begin;
    // What only some see is added query by query: a weight of 0 would not be the same as not adding.
    const auto alone = [&](int i, int from, int to) __attribute__((always_inline)) {
      for (int k = from; k < to; ++k) {
        const T* row = static_cast<const T*>(rows[k]) + d;
        for (int j = 0; j < kColumns; ++j)
          sum[i][j] = V::fma(V::all(w[i][k]), Rows<V>::load(row + 16 * j, 16), sum[i][j]);
      }
    };
    for (int i = 0; i < kCount; ++i) alone(i, c.begin[first + i], smaller(begin, c.end[first + i]));
    for (int k = begin; k < end; ++k) {
      const T* row = static_cast<const T*>(rows[k]) + d;
      V value[kColumns];
      for (int j = 0; j < kColumns; ++j) value[j] = Rows<V>::load(row + 16 * j, 16);
      for (int i = 0; i < kCount; ++i) {
        const V weight = V::all(w[i][k]);
        for (int j = 0; j < kColumns; ++j) sum[i][j] = V::fma(weight, value[j], sum[i][j]);
      }
    }
    for (int i = 0; i < kCount; ++i) alone(i, larger(end, c.begin[first + i]), c.end[first + i]);
    for (int i = 0; i < kCount; ++i)
      for (int j = 0; j < kColumns; ++j)
        Rows<V>::store(sum[i][j], c.result[first + i] + d + 16 * j, smaller(16, c.head_dim - d - 16 * j));
  }
};

}  // namespace shoal::ops::cpu
