// Kernels that look for something: the pieces of sampling, and the nearest codebook entry.
#pragma once

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/vector_rows.h"

namespace shoal::ops::cpu {

template <typename V>
struct Search {
  static float max(const float* x, int64_t n, bool* has_nan) {
    V best = V::all(-__builtin_inff());
    uint32_t nans = 0;
    Rows<V>::pieces(n, [&](int64_t i, int count) {
      const V v = load_or_lowest(x + i, count);
      nans |= V::bits(V::unordered(v));
      best = V::max(v, best);
    });
    float lanes[16];
    best.store(lanes);
    float largest = lanes[0];
    for (int i = 1; i < 16; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
    *has_nan = nans != 0;
    return largest;
  }

  static double softmax_weights(const float* x, float max, float* weights, int64_t n) {
    // At 2^-12 and above a float is a multiple of 2^-35 already; below, adding 2^-12 makes it one. A sum of
    // 2^18 multiples of 2^-35 that are at most 1 needs 53 bits: exact in double.
    const V fine = V::all(0x1p-12f);
    double sums[8] = {};
    Rows<V>::pieces(n, [&](int64_t i, int count) {
      const V distance = load_or_lowest(x + i, count) - V::all(max);
      // e^-25 < 2^-36 is rounded to zero, as is most of the vocabulary when a model is certain.
      if (V::bits(V::less(V::all(-25.0f), distance)) == 0)
        return Rows<V>::store(V::zero(), weights + i, count);
      const V e = cpu::exp_nonpositive(distance);
      const V w = V::select(V::less(e, fine), (e + fine) - fine, e);
      Rows<V>::store(w, weights + i, count);
      V::add_to(sums, w);
    });
    return total(sums);
  }

  static Above above(const WeightedLogits& entries, float pivot) {
    double sums[8] = {};
    V larger = V::zero(), reaching = V::zero();  // counts: lanes of at most 2^14
    Rows<V>::pieces(entries.count, [&](int64_t i, int count) {
      const V x = load_or_lowest(entries.logits + i, count);
      const auto reaches = V::at_most(V::all(pivot), x);
      if (V::bits(reaches) == 0) return;
      const auto exceeds = V::less(V::all(pivot), x);
      reaching = reaching + V::select(reaches, V::all(1.0f), V::zero());
      larger = larger + V::select(exceeds, V::all(1.0f), V::zero());
      V::add_to(sums, V::select(exceeds, Rows<V>::load(entries.weights + i, count), V::zero()));
    });
    const int64_t count = static_cast<int64_t>(V::sum(larger));
    return {total(sums), count, static_cast<int64_t>(V::sum(reaching)) - count};
  }

  static double narrow(const WeightedLogits& entries, float low, float high, WeightedLogits* within) {
    double sums[8] = {};
    int64_t found = 0;  // <= i: only entries that have been read are overwritten
    Rows<V>::pieces(entries.count, [&](int64_t i, int count) {
      const V x = load_or_lowest(entries.logits + i, count);
      const auto above = V::less(V::all(low), x), below = V::less(x, V::all(high));
      const uint32_t lanes = V::bits(above) & V::bits(below);
      if (lanes == 0) return;
      const V weight = Rows<V>::load(entries.weights + i, count);
      V::add_to(sums, V::select(above, V::select(below, weight, V::zero()), V::zero()));
      V::compress(lanes, x, within->logits + found);
      found += V::compress(lanes, weight, within->weights + found);
    });
    within->count = found;
    return total(sums);
  }

  static int64_t blocks_at_least(const float* x, float least, int32_t* blocks, int64_t n) {
    int64_t found = 0;
    Rows<V>::pieces(n, [&](int64_t i, int count) {
      uint32_t hits = V::bits(V::at_most(V::all(least), load_or_lowest(x + i, count)));
      if (hits == 0) return;
      hits |= hits >> 2;
      hits = (hits | hits >> 1) & 0x1111u;
      for (; hits != 0; hits &= hits - 1)
        blocks[found++] = static_cast<int32_t>(i / 4) + __builtin_ctz(hits) / 4;
    });
    return found;
  }

  static constexpr int kRows = 32;     // that share one transposed block of entries
  static constexpr int kMostDim = 64;  // checked by the op

  // The best entry of each lane so far.
  struct Best {
    float value[16], index[16];  // indices below 2^24 are exact
  };

  static void nearest_codes(const float* x, int64_t x_stride, int64_t rows, const float* directions,
                            int64_t entries, int64_t dim, int32_t* codes) {
    for (int64_t row = 0; row < rows; row += kRows) {
      const int count = static_cast<int>(rows - row < kRows ? rows - row : kRows);
      Best best[kRows];
      for (int i = 0; i < count; ++i) {
        V::all(-__builtin_inff()).store(best[i].value);
        V::zero().store(best[i].index);
      }
      float block[kMostDim * 16];  // [dim, 16 entries]
      for (int64_t entry = 0; entry < entries; entry += 16) {
        const int lanes = static_cast<int>(entries - entry < 16 ? entries - entry : 16);
        transpose_entries(directions + entry * dim, lanes, dim, block);
        for (int i = 0; i < count; ++i) compare(x + (row + i) * x_stride, block, dim, entry, lanes, best[i]);
      }
      for (int i = 0; i < count; ++i) codes[row + i] = winner(best[i]);
    }
  }

 private:
  static V load_or_lowest(const float* x, int count) {
    if (count == 16) return V::load(x);
    return V::select(V::between(0, count), V::load(x, count), V::all(-__builtin_inff()));
  }

  static double total(const double* sums) {
    double sum = 0;
    for (int i = 0; i < 8; ++i) sum += sums[i];
    return sum;
  }

  static void transpose_entries(const float* directions, int lanes, int64_t dim, float* block) {
    for (int64_t d = 0; d < dim; d += 16) {
      const int width = static_cast<int>(dim - d < 16 ? dim - d : 16);
      V columns[16];
      for (int i = 0; i < 16; ++i)
        columns[i] = Rows<V>::load(directions + (i < lanes ? i : 0) * dim + d, width);
      V::transpose(columns);
      for (int i = 0; i < width; ++i) columns[i].store(block + (d + i) * 16);
    }
  }

  static void compare(const float* x, const float* block, int64_t dim, int64_t entry, int lanes, Best& best) {
    V dot = V::zero();
    for (int64_t d = 0; d < dim; ++d) dot = V::fma(V::all(x[d]), V::load(block + d * 16), dot);
    if (lanes < 16) dot = V::select(V::between(0, lanes), dot, V::all(-__builtin_inff()));
    static constexpr float kLane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const V index = V::all(static_cast<float>(entry)) + V::load(kLane);
    const V value = V::load(best.value);
    const auto better = V::less(value, dot);
    V::select(better, dot, value).store(best.value);
    V::select(better, index, V::load(best.index)).store(best.index);
  }

  static int32_t winner(const Best& best) {
    int at = 0;
    for (int i = 1; i < 16; ++i)
      if (best.value[i] > best.value[at] ||
          (best.value[i] == best.value[at] && best.index[i] < best.index[at]))
        at = i;
    return static_cast<int32_t>(best.index[at]);
  }
};

}  // namespace shoal::ops::cpu
