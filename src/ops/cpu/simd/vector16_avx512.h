// Vector16 as one AVX-512 register (F, BW, VL, DQ).
#pragma once

#include <immintrin.h>

#include "ops/cpu/simd/vector16.h"

namespace shoal::ops::cpu {

struct Avx512;

template <>
struct Vector16<Avx512> {
  using V = Vector16;
  using Mask = __mmask16;
  struct Words {
    __m512i x;

    static Words all(uint32_t value) { return {_mm512_set1_epi32(static_cast<int>(value))}; }
    static Words load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
    friend Words operator+(Words a, Words b) { return {_mm512_add_epi32(a.x, b.x)}; }
    friend Words operator^(Words a, Words b) { return {_mm512_xor_si512(a.x, b.x)}; }
    static Words multiply(Words a, uint32_t m, Words* low) {
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(m));
      const __m512i even = _mm512_mul_epu32(a.x, factor);
      const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.x, 32), factor);
      low->x = _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA);
      return {_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB)};
    }
    static V upper_bits(Words a) { return {_mm512_cvtepi32_ps(_mm512_srli_epi32(a.x, 9))}; }
  };
  static constexpr int kQueries = 8, kColumns = 4;

  __m512 x;

  static V zero() { return {_mm512_setzero_ps()}; }
  static V all(float value) { return {_mm512_set1_ps(value)}; }
  static V load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static V load(const float* p, int n) { return {_mm512_maskz_loadu_ps(between(0, n), p)}; }
  static V load_bf16(const uint16_t* p) {
    return {widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static V load_bf16(const uint16_t* p, int n) { return {widen(_mm256_maskz_loadu_epi16(between(0, n), p))}; }
  static V load_bf16_pairs(const uint16_t* p) { return {_mm512_castsi512_ps(_mm512_loadu_si512(p))}; }
  static V first_of_bf16_pairs(V a) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a.x), 16))};
  }
  static V second_of_bf16_pairs(V a) {
    return {_mm512_and_ps(a.x, _mm512_castsi512_ps(_mm512_set1_epi32(-0x10000)))};
  }
  static V load_i8(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
  }
  static V load_i8(const int8_t* p, int n) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(between(0, n), p)))};
  }
  void store(float* p) const { _mm512_storeu_ps(p, x); }
  void store(float* p, int n) const { _mm512_mask_storeu_ps(p, between(0, n), x); }
  void store_bf16(uint16_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(x)); }
  void store_bf16(uint16_t* p, int n) const { _mm256_mask_storeu_epi16(p, between(0, n), narrow(x)); }

  void store_low_bytes(int8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_castps_si512(x)));
  }
  void store_low_bytes(int8_t* p, int n) const {
    _mm_mask_storeu_epi8(p, between(0, n), _mm512_cvtepi32_epi8(_mm512_castps_si512(x)));
  }

  friend V operator+(V a, V b) { return {_mm512_add_ps(a.x, b.x)}; }
  friend V operator-(V a, V b) { return {_mm512_sub_ps(a.x, b.x)}; }
  friend V operator*(V a, V b) { return {_mm512_mul_ps(a.x, b.x)}; }
  friend V operator/(V a, V b) { return {_mm512_div_ps(a.x, b.x)}; }
  static V fma(V a, V b, V c) { return {_mm512_fmadd_ps(a.x, b.x, c.x)}; }
  static V fnma(V a, V b, V c) { return {_mm512_fnmadd_ps(a.x, b.x, c.x)}; }
  static V max(V a, V b) { return {_mm512_max_ps(a.x, b.x)}; }
  static V abs(V a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.x)}; }
  static V sqrt(V a) { return {_mm512_sqrt_ps(a.x)}; }

  static Mask less(V a, V b) { return _mm512_cmp_ps_mask(a.x, b.x, _CMP_LT_OQ); }
  static Mask at_most(V a, V b) { return _mm512_cmp_ps_mask(a.x, b.x, _CMP_LE_OQ); }
  static Mask unordered(V a) { return _mm512_cmp_ps_mask(a.x, a.x, _CMP_UNORD_Q); }
  static uint32_t bits(Mask m) { return m; }
  static V select(Mask m, V a, V b) { return {_mm512_mask_blend_ps(m, b.x, a.x)}; }
  static Mask between(int begin, int end) { return static_cast<Mask>(below(end) & ~below(begin)); }

  static V negate_even(V a) { return {_mm512_mask_xor_ps(a.x, 0x5555, a.x, _mm512_set1_ps(-0.0f))}; }
  static V swap_pairs(V a) { return {_mm512_permute_ps(a.x, 0xb1)}; }
  static V even_of_pairs(V a) { return {_mm512_moveldup_ps(a.x)}; }
  static V odd_of_pairs(V a) { return {_mm512_movehdup_ps(a.x)}; }
  static V power_of_two(V m) {
    const __m512i biased = _mm512_add_epi32(_mm512_castps_si512(m.x), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
  }
  static V split(V u, V* n) {
    const __m512i bits = _mm512_sub_epi32(_mm512_castps_si512(u.x), _mm512_set1_epi32(kSqrtHalf));
    n->x = _mm512_cvtepi32_ps(_mm512_srai_epi32(bits, 23));
    const __m512i mantissa = _mm512_and_si512(bits, _mm512_set1_epi32(0x007fffff));
    return {_mm512_castsi512_ps(_mm512_add_epi32(mantissa, _mm512_set1_epi32(kSqrtHalf)))};
  }
  // Compressed in a register: Zen 4 takes many times as long to compress into memory.
  static int compress(uint32_t lanes, V a, float* p) {
    _mm512_storeu_ps(p, _mm512_maskz_compress_ps(static_cast<Mask>(lanes), a.x));
    return __builtin_popcount(lanes);
  }
  static float sum(V a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.x), _mm512_extractf32x8_ps(a.x, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static void add_to(double* sums, V a) {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(a.x));
    const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.x, 1));
    _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), _mm512_add_pd(low, high)));
  }
  static void transpose(V* rows) {
    __m512 a[16], b[16];
    for (int i = 0; i < 8; ++i) {  // pairs of rows
      a[2 * i] = _mm512_unpacklo_ps(rows[2 * i].x, rows[2 * i + 1].x);
      a[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i].x, rows[2 * i + 1].x);
    }
    for (int i = 0; i < 4; ++i) {  // fours: b[4i + c] holds columns c, c + 4, c + 8, c + 12 of rows 4i ..
      const __m512* q = a + 4 * i;
      b[4 * i] = _mm512_shuffle_ps(q[0], q[2], 0x44);
      b[4 * i + 1] = _mm512_shuffle_ps(q[0], q[2], 0xee);
      b[4 * i + 2] = _mm512_shuffle_ps(q[1], q[3], 0x44);
      b[4 * i + 3] = _mm512_shuffle_ps(q[1], q[3], 0xee);
    }
    for (int c = 0; c < 4; ++c) {  // 4 x 4 quarters of 128 bits
      const __m512 low_even = _mm512_shuffle_f32x4(b[c], b[4 + c], 0x88);
      const __m512 low_odd = _mm512_shuffle_f32x4(b[c], b[4 + c], 0xdd);
      const __m512 high_even = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0x88);
      const __m512 high_odd = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0xdd);
      rows[c].x = _mm512_shuffle_f32x4(low_even, high_even, 0x88);
      rows[4 + c].x = _mm512_shuffle_f32x4(low_odd, high_odd, 0x88);
      rows[8 + c].x = _mm512_shuffle_f32x4(low_even, high_even, 0xdd);
      rows[12 + c].x = _mm512_shuffle_f32x4(low_odd, high_odd, 0xdd);
    }
  }

 private:
  // Lanes i < n, for n of any size.
  static uint32_t below(int n) { return n <= 0 ? 0 : n >= 16 ? 0xffffu : (1u << n) - 1; }
  static __m512 widen(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  static __m256i narrow(__m512 x) {
    const __m512i b = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(b, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(b, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(sum, nan, quiet), 16));
  }
};

}  // namespace shoal::ops::cpu
