// Kernels over one row: element-wise functions and normalisations. Templates over Vector16<Isa>.
#pragma once

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/simd/vector_math.h"

namespace shoal::ops::cpu {

template <typename V>
struct Rows {
  // body(i, count) for i = 0, 16, ...; count is 16 except for the last piece.
  template <typename Body>
  static void pieces(int64_t n, Body body) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) body(i, 16);
    if (i < n) body(i, static_cast<int>(n - i));
  }
  static V load(const float* p, int count) { return count == 16 ? V::load(p) : V::load(p, count); }
  static V load(const uint16_t* p, int count) {
    return count == 16 ? V::load_bf16(p) : V::load_bf16(p, count);
  }
  static V load(const int8_t* p, int count) { return count == 16 ? V::load_i8(p) : V::load_i8(p, count); }
  static void store(V v, float* p, int count) { count == 16 ? v.store(p) : v.store(p, count); }
  static void store(V v, uint16_t* p, int count) { count == 16 ? v.store_bf16(p) : v.store_bf16(p, count); }

  template <typename T>
  static void snake_to(const float* x, const float* alpha, T* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) {
      store(cpu::snake(load(x + i, count), load(alpha + i, count)), y + i, count);
    });
  }
  static void round_bf16(const float* x, uint16_t* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) { store(load(x + i, count), y + i, count); });
  }
  static void widen_bf16(const uint16_t* x, float* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) { store(load(x + i, count), y + i, count); });
  }
  static void swiglu(const float* gate, const float* up, float* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) {
      store(silu(load(gate + i, count)) * load(up + i, count), y + i, count);
    });
  }
  static void gelu(const float* x, float* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) { store(cpu::gelu(load(x + i, count)), y + i, count); });
  }
  static void gelu_tanh(const float* x, float* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) { store(cpu::gelu_tanh(load(x + i, count)), y + i, count); });
  }
  static void exp_nonpositive(const float* x, float* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) { store(cpu::exp_nonpositive(load(x + i, count)), y + i, count); });
  }
  static void add(const float* x, float* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) { store(load(y + i, count) + load(x + i, count), y + i, count); });
  }
  static void divide(float divisor, float* y, int64_t n) {
    pieces(n, [=](int64_t i, int count) { store(load(y + i, count) / V::all(divisor), y + i, count); });
  }
  static void rotate_pairs(const float* cos_sin, float* x, int64_t n) {
    pieces(n, [=](int64_t i, int count) {
      const V v = load(x + i, count), cs = load(cos_sin + i, count);
      // (a cos - b sin, b cos + a sin), each product rounded
      const V cross = V::swap_pairs(v) * V::odd_of_pairs(cs);
      store(v * V::even_of_pairs(cs) + V::negate_even(cross), x + i, count);
    });
  }

  // sum over i of term(i, count), in four interleaved chains of 16 lanes: ((0 + 1) + (2 + 3)), then the tree.
  // term adds its piece to the chain it is given.
  template <typename Term>
  static float sum(int64_t n, Term term) {
    V chain[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
      for (int c = 0; c < 4; ++c) chain[c] = term(i + 16 * c, 16, chain[c]);
    for (int c = 0; i < n; ++c, i += 16)
      chain[c] = term(i, n - i < 16 ? static_cast<int>(n - i) : 16, chain[c]);
    return V::sum((chain[0] + chain[1]) + (chain[2] + chain[3]));
  }

  static void finish_rows(const FinishedRows& r) {
    for (int64_t row = 0; row < r.rows; ++row) {
      float* const y = r.y + row * r.y_stride;
      pieces(r.count, [=, sums = r.sums + row * r.sums_stride, bias = r.bias, scale = r.scale,
                       accumulate = r.accumulate](int64_t i, int count) {
        V v = load(sums + i, count);
        if (bias) v = v + load(bias + i, count);
        if (scale) v = v * load(scale + i, count);
        store(accumulate ? load(y + i, count) + v : v, y + i, count);
      });
    }
  }

  static float round_i8(const float* x, int8_t* y, int64_t n) {
    constexpr float kMost = 127;
    V most = V::zero(), zeros = V::zero();  // zeros: NaN where a value is not finite
    pieces(n, [&](int64_t i, int count) {
      const V v = load(x + i, count);
      most = V::max(V::abs(v), most);
      zeros = zeros + v * V::zero();
    });
    float lanes[16];
    most.store(lanes);
    float largest = lanes[0];
    for (int i = 1; i < 16; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
    const V factor = V::all(largest > 0 ? kMost / largest : 0);
    pieces(n, [=](int64_t i, int count) {
      const V nearest = load(x + i, count) * factor + V::all(kMagic);
      count == 16 ? nearest.store_low_bytes(y + i) : nearest.store_low_bytes(y + i, count);
    });
    return largest / kMost + V::sum(zeros);
  }
  static float sum_i8(const int8_t* x, int64_t n) {
    V total = V::zero();
    pieces(n, [&](int64_t i, int count) { total = total + load(x + i, count); });
    return V::sum(total);
  }

  static void rms_norm(const float* x, const float* weight, float eps, float* y, int64_t n) {
    const float squares = sum(n, [=](int64_t i, int count, V chain) {
      const V v = load(x + i, count);
      return V::fma(v, v, chain);
    });
    const V scale = V::all(1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps));
    pieces(n, [=](int64_t i, int count) {
      store(load(x + i, count) * scale * load(weight + i, count), y + i, count);
    });
  }

  static void layer_norm(const float* x, const float* weight, const float* bias, float eps, float* y,
                         int64_t n) {
    const float total = sum(n, [=](int64_t i, int count, V chain) { return chain + load(x + i, count); });
    const V mean = V::all(total / static_cast<float>(n));
    const float squares = sum(n, [=](int64_t i, int count, V chain) {
      const V v = V::select(V::between(0, count), load(x + i, count) - mean, V::zero());
      return V::fma(v, v, chain);
    });
    const V scale = V::all(1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps));
    pieces(n, [=](int64_t i, int count) {
      const V v = (load(x + i, count) - mean) * scale;
      store(v * load(weight + i, count) + load(bias + i, count), y + i, count);
    });
  }
};

}  // namespace shoal::ops::cpu
