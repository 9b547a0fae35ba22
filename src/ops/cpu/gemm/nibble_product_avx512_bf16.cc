// 4-bit products by VPDPBUSD (integer_product_avx512_bf16.cc): a load gives the unsigned bytes of two.
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kNibbleVnniPrefetch = 2048;

typedef int NibbleSums __attribute__((vector_size(64)));  // in registers: integer_product_avx512_bf16.cc

inline __m512 widen_16_bf16(const char* at) {
  const __m256i bits = _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// A group of weights: its integers, times their scales, are added to the sums, which rest in L1. w: its
// scales. The block is a copy: what is stored to the sums could change another, and GCC would load it again
// each time.
template <int R, int P>
inline void multiply_group_of_nibbles(const ProductBlock block, const char* x, const char* w,
                                      const float* x_scales, const float* x_sums) {
  NibbleSums products[R][P];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) products[r][p] = NibbleSums{};
  const __m512i low_bits = _mm512_set1_epi8(15);
  const char* at = w + kNibbleHeader;
  for (int64_t k = 0; k < block.group; k += 8, at += 64) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {  // one after the other: 24 sums leave no registers for both
      __m512i weights[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const __m512i both = _mm512_load_si512(at + p * block.panel_stride);
        weights[p] = _mm512_and_si512(half == 0 ? both : _mm512_srli_epi16(both, 4), low_bits);
        if (half == 0) _mm_prefetch(at + p * block.panel_stride + kNibbleVnniPrefetch, _MM_HINT_T0);
      }
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        int four;
        __builtin_memcpy(&four, x + r * block.row_stride + k + 4 * half, sizeof four);
        const __m512i inputs = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p)
          products[r][p] = (NibbleSums)_mm512_dpbusd_epi32((__m512i)products[r][p], weights[p], inputs);
      }
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
    const char* const scales = w + p * block.panel_stride;
    const __m512 scale = widen_16_bf16(scales), minimum = widen_16_bf16(scales + 32);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      float* const sums = block.sums + (r * P + p) * 16;
      const __m512 x_sum = _mm512_set1_ps(x_sums[r * block.sum_stride]);
      const __m512 factor = _mm512_mul_ps(scale, _mm512_set1_ps(x_scales[r * block.scale_stride]));
      const __m512 product = _mm512_cvtepi32_ps((__m512i)products[r][p]);
      const __m512 sum = _mm512_fmadd_ps(product, factor, _mm512_load_ps(sums));
      _mm512_store_ps(sums, _mm512_fmadd_ps(minimum, x_sum, sum));
    }
  }
}

template <int R, int P>
void multiply_all_nibbles(const ProductBlock& block) {
  for (int i = 0; i < R * P; ++i) _mm512_store_ps(block.sums + i * 16, _mm512_setzero_ps());
  const char *x = static_cast<const char*>(block.input), *w = block.weights;
  const float *scales = block.input_scales, *sums = block.input_sums;
  const int64_t bytes = kNibbleHeader + block.group * 8;
  for (int64_t k = 0; k < block.depth; k += block.group, w += bytes)
    multiply_group_of_nibbles<R, P>(block, x + k, w, scales + k / kGroup, sums++);
}

template <int R>
void nibbles_by_panels(const ProductBlock& block) {
  if constexpr (R <= 6) {
    if (block.panels == 4) return multiply_all_nibbles<R, 4>(block);
    if (block.panels == 3) return multiply_all_nibbles<R, 3>(block);
  }
  if (block.panels == 2) return multiply_all_nibbles<R, 2>(block);
  multiply_all_nibbles<R, 1>(block);
}

template <int R = kMostVnniRows>
void nibbles_by_rows(const ProductBlock& block) {
  if constexpr (R > 1)
    if (block.rows < R) return nibbles_by_rows<R - 1>(block);
  nibbles_by_panels<R>(block);
}

}  // namespace

// Of few rows four panels at a time: their sums do not wait for each other.
int nibble_panels_for(int rows) { return rows <= 6 ? 4 : 2; }
void vnni_multiply_u4(const ProductBlock& block) { nibbles_by_rows<>(block); }

}  // namespace shoal::ops::cpu

#endif
