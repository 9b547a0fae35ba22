// Vector16 in plain C++: the definition that the others follow.
#pragma once

#include "ops/cpu/simd/vector16.h"

namespace shoal::ops::cpu {

struct Portable;

template <>
struct Vector16<Portable> {
  using V = Vector16;
  using Mask = uint32_t;
  static constexpr int kQueries = 4, kColumns = 2;

  struct Words {
    uint32_t lane[16];

    template <typename F>
    static Words make(F f) {
      Words words;
      for (int i = 0; i < 16; ++i) words.lane[i] = f(i);
      return words;
    }
    static Words all(uint32_t x) {
      return make([=](int) { return x; });
    }
    static Words load(const int32_t* p) {
      return make([=](int i) { return static_cast<uint32_t>(p[i]); });
    }
    friend Words operator+(Words a, Words b) {
      return make([&](int i) { return a.lane[i] + b.lane[i]; });
    }
    friend Words operator^(Words a, Words b) {
      return make([&](int i) { return a.lane[i] ^ b.lane[i]; });
    }
    static Words multiply(Words a, uint32_t m, Words* low) {
      *low = make([&](int i) { return a.lane[i] * m; });
      return make([&](int i) { return static_cast<uint32_t>(uint64_t{a.lane[i]} * m >> 32); });
    }
    static V upper_bits(Words a) {
      return V::make([&](int i) { return static_cast<float>(static_cast<int32_t>(a.lane[i] >> 9)); });
    }
  };

  float lane[16];

  template <typename F>
  static V make(F f) {
    V v;
    for (int i = 0; i < 16; ++i) v.lane[i] = f(i);
    return v;
  }
  template <typename F>
  static Mask make_mask(F f) {
    Mask m = 0;
    for (int i = 0; i < 16; ++i) m |= static_cast<Mask>(f(i)) << i;
    return m;
  }
  static uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
  static float float_of(uint32_t x) { return __builtin_bit_cast(float, x); }

  static V zero() { return all(0.0f); }
  static V all(float x) {
    return make([=](int) { return x; });
  }
  static V load(const float* p) {
    return make([=](int i) { return p[i]; });
  }
  static V load(const float* p, int n) {
    return make([=](int i) { return i < n ? p[i] : 0.0f; });
  }
  static V load_bf16(const uint16_t* p) {
    return make([=](int i) { return float_of(uint32_t{p[i]} << 16); });
  }
  static V load_bf16(const uint16_t* p, int n) {
    return make([=](int i) { return i < n ? float_of(uint32_t{p[i]} << 16) : 0.0f; });
  }
  static V load_bf16_pairs(const uint16_t* p) {
    return make([=](int i) { return float_of(uint32_t{p[2 * i]} | uint32_t{p[2 * i + 1]} << 16); });
  }
  static V first_of_bf16_pairs(V a) {
    return make([&](int i) { return float_of(bits_of(a.lane[i]) << 16); });
  }
  static V second_of_bf16_pairs(V a) {
    return make([&](int i) { return float_of(bits_of(a.lane[i]) & 0xffff0000u); });
  }
  static V load_i8(const int8_t* p) { return load_i8(p, 16); }
  static V load_i8(const int8_t* p, int n) {
    return make([=](int i) { return i < n ? static_cast<float>(p[i]) : 0.0f; });
  }
  void store(float* p) const { store(p, 16); }
  void store(float* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = lane[i];
  }
  void store_bf16(uint16_t* p) const { store_bf16(p, 16); }
  void store_bf16(uint16_t* p, int n) const {
    for (int i = 0; i < n; ++i) {
      const uint32_t x = bits_of(lane[i]);
      const bool nan = (x & 0x7fffffffu) > 0x7f800000u;
      p[i] = static_cast<uint16_t>(nan ? (x >> 16) | 0x40u : (x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
    }
  }

  void store_low_bytes(int8_t* p) const { store_low_bytes(p, 16); }
  void store_low_bytes(int8_t* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = static_cast<int8_t>(bits_of(lane[i]));
  }

  friend V operator+(V a, V b) {
    return make([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  friend V operator-(V a, V b) {
    return make([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  friend V operator*(V a, V b) {
    return make([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  friend V operator/(V a, V b) {
    return make([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  static V fma(V a, V b, V c) {
    return make([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
  }
  static V fnma(V a, V b, V c) {
    return make([&](int i) { return __builtin_fmaf(-a.lane[i], b.lane[i], c.lane[i]); });
  }
  static V max(V a, V b) {
    return make([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static V abs(V a) {
    return make([&](int i) { return float_of(bits_of(a.lane[i]) & 0x7fffffffu); });
  }
  static V sqrt(V a) {
    return make([&](int i) { return __builtin_sqrtf(a.lane[i]); });
  }

  static Mask less(V a, V b) {
    return make_mask([&](int i) { return a.lane[i] < b.lane[i]; });
  }
  static Mask at_most(V a, V b) {
    return make_mask([&](int i) { return a.lane[i] <= b.lane[i]; });
  }
  static Mask unordered(V a) {
    return make_mask([&](int i) { return a.lane[i] != a.lane[i]; });
  }
  static uint32_t bits(Mask m) { return m; }
  static V select(Mask m, V a, V b) {
    return make([&](int i) { return (m >> i & 1u) != 0 ? a.lane[i] : b.lane[i]; });
  }
  // Lanes begin <= i < end.
  static Mask between(int begin, int end) {
    return make_mask([&](int i) { return begin <= i && i < end; });
  }

  static V negate_even(V a) {
    return make([&](int i) { return i % 2 == 0 ? -a.lane[i] : a.lane[i]; });
  }
  static V swap_pairs(V a) {
    return make([&](int i) { return a.lane[i ^ 1]; });
  }
  static V even_of_pairs(V a) {
    return make([&](int i) { return a.lane[i & ~1]; });
  }
  static V odd_of_pairs(V a) {
    return make([&](int i) { return a.lane[i | 1]; });
  }
  static V power_of_two(V m) {
    return make([&](int i) { return float_of((bits_of(m.lane[i]) + 127u) << 23); });
  }
  static V split(V u, V* n) {
    const auto above = [&](int i) { return static_cast<int32_t>(bits_of(u.lane[i])) - kSqrtHalf; };
    *n = make([&](int i) { return static_cast<float>(above(i) >> 23); });
    return make([&](int i) { return float_of(static_cast<uint32_t>((above(i) & 0x007fffff) + kSqrtHalf)); });
  }
  static int compress(uint32_t lanes, V a, float* p) {
    int count = 0;
    for (; lanes != 0; lanes &= lanes - 1) p[count++] = a.lane[__builtin_ctz(lanes)];
    return count;
  }
  static float sum(V a) {
    for (int half = 8; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) a.lane[i] = a.lane[i] + a.lane[i + half];
    return a.lane[0];
  }
  static void add_to(double* sums, V a) {
    for (int i = 0; i < 16; ++i) sums[i % 8] += static_cast<double>(a.lane[i]);
  }
  static void transpose(V* rows) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < i; ++j) {
        const float x = rows[i].lane[j];
        rows[i].lane[j] = rows[j].lane[i];
        rows[j].lane[i] = x;
      }
  }
};

}  // namespace shoal::ops::cpu
