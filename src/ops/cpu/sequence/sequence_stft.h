// Short Fourier transforms of 16 frames at once: each lane is a frame. The even and odd parts about the
// middle of a frame are summed separately, so that a bin takes points / 2 products for each of its parts. The
// window's first value is 0: the first sample of a frame is not read.
#pragma once

#include "ops/cpu/rows/vector_rows.h"
#include "ops/cpu/sequence/sequence_math.h"

namespace shoal::ops::cpu {

template <typename V>
struct Stft {
  using R = Rows<V>;
  static constexpr int kMostHalf = kMostPoints / 2;
  static constexpr int kMostColumns = (2 * (kMostHalf + 1) + 15) / 16 * 16;

  static void forward(const StftBlock& b) {
    const int half = b.tables.points / 2, bins = half + 1;
    const auto sample = [&](int n) { return V::load(b.samples + b.offsets[n]); };
    V even[kMostHalf], odd[kMostHalf];  // [n - 1]
    for (int n = 1; n < half; ++n) {
      const V a = sample(n), c = sample(b.tables.points - n);
      even[n - 1] = a + c;
      odd[n - 1] = c - a;  // e^(-i x): the imaginary part is minus the sine's
    }
    even[half - 1] = sample(half);
    V columns[kMostColumns];
    for (int k = 0; k < bins; ++k) {
      const V re = dot(b.tables.cosines + k * half, even, half);
      const bool real = k == 0 || k == half;
      const V im = real ? V::zero() : dot(b.tables.sines + k * half, odd, half - 1);
      columns[k] = real ? V::abs(re) : V::sqrt(V::fma(re, re, im * im));
      columns[bins + k] = angle(im, re);
    }
    const int padded = (2 * bins + 15) / 16 * 16;
    for (int i = 2 * bins; i < padded; ++i) columns[i] = V::zero();
    for (int at = 0; at < padded; at += 16) {
      V::transpose(columns + at);
      const int width = 2 * bins - at < 16 ? 2 * bins - at : 16;
      for (int i = 0; i < b.frames; ++i) R::store(columns[at + i], b.y + i * b.y_stride + at, width);
    }
  }

  static void inverse(const InverseStftBlock& b) {
    const int half = b.tables.points / 2, bins = half + 1;
    V columns[kMostColumns];
    for (int at = 0; at < 2 * bins; at += 16) {
      const int width = 2 * bins - at < 16 ? 2 * bins - at : 16;
      for (int i = 0; i < 16; ++i)
        columns[at + i] = i < b.frames ? R::load(b.x + i * b.x_stride + at, width) : V::zero();
      V::transpose(columns + at);
    }
    const auto exists = V::between(0, b.frames);
    for (int k = 0; k < bins; ++k) {
      const V magnitude = V::select(exists, exponential(columns[k]), V::zero());
      const V phase = sine(columns[bins + k]);
      columns[k] = magnitude * cosine_of_unit(phase);
      columns[bins + k] = magnitude * sine_of_quarter(phase);
    }
    V::zero().store(b.pieces);
    for (int n = 1; n <= half; ++n) {
      V even = V::zero(), odd = V::zero();
      for (int k = 0; k < bins; ++k) {
        even = V::fma(V::all(b.tables.cosines[k * half + n - 1]), columns[k], even);
        odd = V::fma(V::all(b.tables.sines[k * half + n - 1]), columns[bins + k], odd);
      }
      (even - odd).store(b.pieces + n * b.stride);
      if (n < half) (even + odd).store(b.pieces + (b.tables.points - n) * b.stride);
    }
  }

 private:
  static V dot(const float* table, const V* x, int count) {
    V sum = V::zero();
    for (int n = 0; n < count; ++n) sum = V::fma(V::all(table[n]), x[n], sum);
    return sum;
  }
};

}  // namespace shoal::ops::cpu
