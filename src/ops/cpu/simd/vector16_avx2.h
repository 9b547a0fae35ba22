// Vector16 as two AVX2 registers.
#pragma once

#include <immintrin.h>

#include "ops/cpu/simd/vector16.h"

namespace shoal::ops::cpu {

struct Avx2;

// For each set of eight lanes their indices in order, one byte each.
struct LaneOrders {
  uint64_t of[256] = {};
  constexpr LaneOrders() {
    for (unsigned set = 0; set < 256; ++set)
      for (unsigned lane = 0, at = 0; lane < 8; ++lane)
        if ((set >> lane & 1u) != 0) of[set] |= uint64_t{lane} << (8 * at++);
  }
};
inline constexpr LaneOrders kLaneOrders;

template <>
struct Vector16<Avx2> {
  using V = Vector16;
  struct Mask {
    __m256 low, high;
  };
  struct Words {
    __m256i low, high;

    static Words all(uint32_t x) {
      const __m256i lanes = _mm256_set1_epi32(static_cast<int>(x));
      return {lanes, lanes};
    }
    static Words load(const int32_t* p) {
      return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
    }
    friend Words operator+(Words a, Words b) {
      return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
    }
    friend Words operator^(Words a, Words b) {
      return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
    }
    static Words multiply(Words a, uint32_t m, Words* lower) {
      const __m256i factor = _mm256_set1_epi32(static_cast<int>(m));
      return {multiply(a.low, factor, &lower->low), multiply(a.high, factor, &lower->high)};
    }
    static V upper_bits(Words a) { return {upper_bits(a.low), upper_bits(a.high)}; }

   private:
    static __m256i multiply(__m256i a, __m256i factor, __m256i* lower) {
      const __m256i even = _mm256_mul_epu32(a, factor);
      const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
      *lower = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
      return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    }
    static __m256 upper_bits(__m256i a) { return _mm256_cvtepi32_ps(_mm256_srli_epi32(a, 9)); }
  };
  static constexpr int kQueries = 4, kColumns = 2;

  __m256 low, high;

  static V zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static V all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static V load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static V load(const float* p, int n) {
    const Mask m = between(0, n);
    return {_mm256_maskload_ps(p, _mm256_castps_si256(m.low)),
            _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.high))};
  }
  static V load_bf16(const uint16_t* p) {
    return {widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static V load_bf16(const uint16_t* p, int n) {  // AVX2 has no masked 16-bit loads
    uint16_t lanes[16] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return load_bf16(lanes);
  }
  static V load_bf16_pairs(const uint16_t* p) {
    return {_mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
            _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16)))};
  }
  static V first_of_bf16_pairs(V a) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a.low), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a.high), 16))};
  }
  static V second_of_bf16_pairs(V a) {
    const __m256 second = _mm256_castsi256_ps(_mm256_set1_epi32(-0x10000));
    return {_mm256_and_ps(a.low, second), _mm256_and_ps(a.high, second)};
  }
  static V load_i8(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  static V load_i8(const int8_t* p, int n) {
    int8_t lanes[16] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return load_i8(lanes);
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  void store(float* p, int n) const {
    const Mask m = between(0, n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.low), low);
    _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.high), high);
  }
  void store_bf16(uint16_t* p) const {
    const __m256i packed = _mm256_packus_epi32(narrow(low), narrow(high));  // halves interleaved by 4
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  void store_bf16(uint16_t* p, int n) const {
    uint16_t lanes[16];
    store_bf16(lanes);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }

  void store_low_bytes(int8_t* p) const {
    const __m256i byte = _mm256_set1_epi32(0xff);
    const __m256i packed = _mm256_packus_epi32(_mm256_and_si256(_mm256_castps_si256(low), byte),
                                               _mm256_and_si256(_mm256_castps_si256(high), byte));
    const __m256i words = _mm256_permute4x64_epi64(packed, 0xd8);  // halves interleaved by 4
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  void store_low_bytes(int8_t* p, int n) const {
    int8_t lanes[16];
    store_low_bytes(lanes);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }

  friend V operator+(V a, V b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  friend V operator-(V a, V b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  friend V operator*(V a, V b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  friend V operator/(V a, V b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
  static V fma(V a, V b, V c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static V fnma(V a, V b, V c) {
    return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
  }
  static V max(V a, V b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
  static V abs(V a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
  }
  static V sqrt(V a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }

  static Mask less(V a, V b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
  }
  static Mask at_most(V a, V b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_LE_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LE_OQ)};
  }
  static Mask unordered(V a) {
    return {_mm256_cmp_ps(a.low, a.low, _CMP_UNORD_Q), _mm256_cmp_ps(a.high, a.high, _CMP_UNORD_Q)};
  }
  static uint32_t bits(Mask m) {
    return static_cast<uint32_t>(_mm256_movemask_ps(m.low)) |
           static_cast<uint32_t>(_mm256_movemask_ps(m.high)) << 8;
  }
  static V select(Mask m, V a, V b) {
    return {_mm256_blendv_ps(b.low, a.low, m.low), _mm256_blendv_ps(b.high, a.high, m.high)};
  }
  static Mask between(int begin, int end) {
    const __m256i from = _mm256_set1_epi32(begin - 1), to = _mm256_set1_epi32(end);
    const __m256i first = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i second = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
    return {within(first, from, to), within(second, from, to)};
  }

  static V negate_even(V a) {
    const __m256 sign = _mm256_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f);
    return {_mm256_xor_ps(a.low, sign), _mm256_xor_ps(a.high, sign)};
  }
  static V swap_pairs(V a) { return {_mm256_permute_ps(a.low, 0xb1), _mm256_permute_ps(a.high, 0xb1)}; }
  static V even_of_pairs(V a) { return {_mm256_moveldup_ps(a.low), _mm256_moveldup_ps(a.high)}; }
  static V odd_of_pairs(V a) { return {_mm256_movehdup_ps(a.low), _mm256_movehdup_ps(a.high)}; }
  static V power_of_two(V m) { return {power(m.low), power(m.high)}; }
  static V split(V u, V* n) { return {split(u.low, &n->low), split(u.high, &n->high)}; }
  static int compress(uint32_t lanes, V a, float* p) {
    const int count = compress(lanes & 0xffu, a.low, p);
    return count + compress(lanes >> 8, a.high, p + count);
  }
  static float sum(V a) {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static void add_to(double* sums, V a) {
    const __m256d first = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a.low)),
                                        _mm256_cvtps_pd(_mm256_castps256_ps128(a.high)));
    const __m256d second = _mm256_add_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(a.low, 1)),
                                         _mm256_cvtps_pd(_mm256_extractf128_ps(a.high, 1)));
    _mm256_storeu_pd(sums, _mm256_add_pd(_mm256_loadu_pd(sums), first));
    _mm256_storeu_pd(sums + 4, _mm256_add_pd(_mm256_loadu_pd(sums + 4), second));
  }
  static void transpose(V* rows) {  // four 8 x 8 blocks, then B and C trade places
    transpose_8(rows, false);
    transpose_8(rows, true);
    transpose_8(rows + 8, false);
    transpose_8(rows + 8, true);
    for (int i = 0; i < 8; ++i) {
      const __m256 b = rows[i].high;
      rows[i].high = rows[i + 8].low;
      rows[i + 8].low = b;
    }
  }

 private:
  static __m256 widen(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  static __m256i narrow(__m256 x) {  // 16 bits each, zero-extended
    const __m256i b = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(b, _mm256_set1_epi32(0x7fff)), odd), 16);
    const __m256i nan = _mm256_or_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, nan, is_nan);
  }
  static __m256 within(__m256i lane, __m256i from, __m256i to) {
    return _mm256_castsi256_ps(
        _mm256_and_si256(_mm256_cmpgt_epi32(lane, from), _mm256_cmpgt_epi32(to, lane)));
  }
  static __m256 power(__m256 m) {
    const __m256i biased = _mm256_add_epi32(_mm256_castps_si256(m), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static __m256 split(__m256 u, __m256* n) {
    const __m256i bits = _mm256_sub_epi32(_mm256_castps_si256(u), _mm256_set1_epi32(kSqrtHalf));
    *n = _mm256_cvtepi32_ps(_mm256_srai_epi32(bits, 23));
    const __m256i mantissa = _mm256_and_si256(bits, _mm256_set1_epi32(0x007fffff));
    return _mm256_castsi256_ps(_mm256_add_epi32(mantissa, _mm256_set1_epi32(kSqrtHalf)));
  }
  static int compress(uint32_t lanes, __m256 a, float* p) {
    const __m128i order = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLaneOrders.of + lanes));
    _mm256_storeu_ps(p, _mm256_permutevar8x32_ps(a, _mm256_cvtepu8_epi32(order)));
    return __builtin_popcount(lanes);
  }
  static __m256& half(V& v, bool high) { return high ? v.high : v.low; }
  static void transpose_8(V* rows, bool high) {
    __m256 a[8], b[8];
    for (int i = 0; i < 4; ++i) {
      const __m256 x = half(rows[2 * i], high), y = half(rows[2 * i + 1], high);
      a[2 * i] = _mm256_unpacklo_ps(x, y);
      a[2 * i + 1] = _mm256_unpackhi_ps(x, y);
    }
    for (int i = 0; i < 2; ++i) {
      const __m256* q = a + 4 * i;
      b[4 * i] = _mm256_shuffle_ps(q[0], q[2], 0x44);
      b[4 * i + 1] = _mm256_shuffle_ps(q[0], q[2], 0xee);
      b[4 * i + 2] = _mm256_shuffle_ps(q[1], q[3], 0x44);
      b[4 * i + 3] = _mm256_shuffle_ps(q[1], q[3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      half(rows[i], high) = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
      half(rows[i + 4], high) = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
  }
};

}  // namespace shoal::ops::cpu
