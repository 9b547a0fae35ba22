// 8-bit products by VPDPBUSD, which every CPU with AVX512-BF16 has: it adds four products of unsigned and
// signed bytes to each of 16 sums.
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kVnniPrefetchBytes = 1024;

// GCC 12 keeps arrays of it in registers, those of __m512i in memory (64 rows: 420 against 720 GFLOP/s).
typedef int Integers __attribute__((vector_size(64)));

// One group of inputs: the integers are added to the sums, which rest in L1.
template <int R, int P>
void multiply_group(const ProductBlock& block, int64_t group) {
  Integers products[R][P];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) products[r][p] = Integers{};
  const char* x = static_cast<const char*>(block.input) + group * kGroup;
  const char* w = block.weights + group * kGroup * 16;
  for (int64_t k = 0; k < kGroup; k += 4, w += 64) {
    __m512i weights[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const char* at = w + p * block.panel_stride;
      weights[p] = _mm512_load_si512(at);
      _mm_prefetch(at + kVnniPrefetchBytes, _MM_HINT_T0);
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      int four;
      __builtin_memcpy(&four, x + r * block.row_stride + k, sizeof four);
      const __m512i inputs = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p)
        products[r][p] = (Integers)_mm512_dpbusd_epi32((__m512i)products[r][p], weights[p], inputs);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const int64_t at = r * block.scale_stride + group;
    const __m512i offset = _mm512_set1_epi32(block.input_offsets[at]);
    const __m512 scale = _mm512_set1_ps(block.input_scales[at]);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      float* const sums = block.sums + (r * P + p) * 16;
      const __m512 product = _mm512_cvtepi32_ps(_mm512_sub_epi32((__m512i)products[r][p], offset));
      _mm512_store_ps(sums, _mm512_fmadd_ps(product, scale, _mm512_load_ps(sums)));
    }
  }
}

template <int R, int P>
void multiply_groups(const ProductBlock& block) {
  for (int i = 0; i < R * P; ++i) _mm512_store_ps(block.sums + i * 16, _mm512_setzero_ps());
  for (int64_t group = 0; group < block.depth / kGroup; ++group) multiply_group<R, P>(block, group);
}

template <int R>
void vnni_by_panels(const ProductBlock& block) {
  if constexpr (R <= 6) {
    if (block.panels == 4) return multiply_groups<R, 4>(block);
    if (block.panels == 3) return multiply_groups<R, 3>(block);
  }
  if (block.panels == 2) return multiply_groups<R, 2>(block);
  multiply_groups<R, 1>(block);
}

template <int R = kMostVnniRows>
void vnni_by_rows(const ProductBlock& block) {
  if constexpr (R > 1)
    if (block.rows < R) return vnni_by_rows<R - 1>(block);
  vnni_by_panels<R>(block);
}

}  // namespace

int vnni_panels_for(int rows) { return rows > 2 && rows <= 6 ? 4 : 2; }
void vnni_multiply_i8(const ProductBlock& block) { vnni_by_rows<>(block); }

}  // namespace shoal::ops::cpu

#endif
