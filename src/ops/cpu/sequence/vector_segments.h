// Kernels over rows of packed utterances: statistics along time and the norms that use them. Templates over
// Vector16<Isa>; lanes are channels.
#pragma once

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/vector_rows.h"

namespace shoal::ops::cpu {

template <typename V>
struct SegmentRows {
  using R = Rows<V>;

  // Mean, then squares, of kVectors vectors of channels, one row after the other; the last vector has `count`
  // channels. The rows stay in the first caches for the second pass.
  template <int kVectors>
  static void moments(const float* x, int64_t stride, int64_t rows, int count, float* mean, float* squares) {
    const auto width = [=](int i) { return i + 1 < kVectors ? 16 : count; };
    V means[kVectors], sums[kVectors];
    for (int i = 0; i < kVectors; ++i) means[i] = V::zero();
    for (int64_t row = 0; row < rows; ++row)
      for (int i = 0; i < kVectors; ++i) means[i] = means[i] + R::load(x + row * stride + 16 * i, width(i));
    for (int i = 0; i < kVectors; ++i) {
      means[i] = means[i] / V::all(static_cast<float>(rows));
      sums[i] = V::zero();
    }
    for (int64_t row = 0; row < rows; ++row)
      for (int i = 0; i < kVectors; ++i) {
        const V left = R::load(x + row * stride + 16 * i, width(i)) - means[i];
        sums[i] = V::fma(left, left, sums[i]);
      }
    for (int i = 0; i < kVectors; ++i) {
      R::store(means[i], mean + 16 * i, width(i));
      R::store(sums[i], squares + 16 * i, width(i));
    }
  }

  static void channel_moments(const float* x, int64_t stride, int64_t rows, int64_t channels, float* mean,
                              float* squares) {
    int64_t c = 0;
    for (; c + 64 <= channels; c += 64) moments<4>(x + c, stride, rows, 16, mean + c, squares + c);
    R::pieces(channels - c, [=](int64_t i, int count) {
      moments<1>(x + c + i, stride, rows, count, mean + c + i, squares + c + i);
    });
  }

  static V leaky(V z, V slope) { return V::select(V::less(z, V::zero()), z * slope, z); }

  // act(z, c, count): of channels c .. c + count - 1.
  template <typename T, typename Act>
  static void norm_rows_to(const NormedRows& rows, Act act) {
    T* const y = static_cast<T*>(rows.y);
    for (int64_t row = 0; row < rows.rows; ++row)
      R::pieces(rows.channels, [&](int64_t c, int count) {
        const V left = R::load(rows.x + row * rows.x_stride + c, count) - R::load(rows.mean + c, count);
        const V z = V::fma(left, R::load(rows.scale + c, count), R::load(rows.shift + c, count));
        R::store(act(z, c, count), y + row * rows.y_stride + c, count);
      });
  }
  template <typename T>
  static void norm_rows_to(const NormedRows& rows) {
    if (!rows.alpha) {
      const V slope = V::all(rows.slope);
      return norm_rows_to<T>(rows, [=](V z, int64_t, int) { return leaky(z, slope); });
    }
    norm_rows_to<T>(rows, [alpha = rows.alpha, inverse = rows.inverse](V z, int64_t c, int count) {
      return V::fma(sin_squared_any(R::load(alpha + c, count) * z), R::load(inverse + c, count), z);
    });
  }
  static void norm_rows(const NormedRows& rows) {
    rows.bf16 ? norm_rows_to<uint16_t>(rows) : norm_rows_to<float>(rows);
  }

  template <typename T>
  static void leaky_sum(const float* const* terms, int count, float factor, float slope, T* y, int64_t n) {
    R::pieces(n, [=](int64_t i, int lanes) {
      V sum = R::load(terms[0] + i, lanes);
      for (int term = 1; term < count; ++term) sum = sum + R::load(terms[term] + i, lanes);
      R::store(leaky(sum * V::all(factor), V::all(slope)), y + i, lanes);
    });
  }

  static void double_row(const float* x, const float* next, const float* weight, const float* bias,
                         float* even, float* odd, int64_t n) {
    R::pieces(n, [=](int64_t i, int count) {
      const V v = R::load(x + i, count), b = R::load(bias + i, count);
      const V behind = next ? R::load(next + i, count) : V::zero();
      R::store(V::fma(v, R::load(weight + n + i, count), b), even + i, count);
      R::store(V::fma(behind, R::load(weight + i, count), V::fma(v, R::load(weight + 2 * n + i, count), b)),
               odd + i, count);
    });
  }
};

}  // namespace shoal::ops::cpu
