// 4-bit products by VPMADDUBSW: it adds two products of unsigned and signed bytes to 16 bits, which hold the
// sum of 16 (16 * 15 * 127 < 32,768).
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kNibblePrefetch = 1024;  // bytes
constexpr int64_t kInputsIn16Bits = 32;    // whose products with an output are added in two sums of 16 bits

inline __m256 widen_bf16(const char* at) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

inline __m256i four_inputs(const char* at) {
  int four;
  __builtin_memcpy(&four, at, sizeof four);
  return _mm256_set1_epi32(four);
}

// Adds the products of 32 inputs to the sums of 16 outputs.
template <int R>
inline void multiply_32(const ProductBlock& block, const char* x, const char* w, __m256i (&sums)[R][2]) {
  const __m256i low_bits = _mm256_set1_epi8(15);
  __m256i narrow[R][2];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) narrow[r][0] = narrow[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int64_t k = 0; k < kInputsIn16Bits; k += 8, w += 64) {
    _mm_prefetch(w + kNibblePrefetch, _MM_HINT_T0);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i*>(w + 32 * half));
      const __m256i low = _mm256_and_si256(both, low_bits);
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), low_bits);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const char* const at = x + r * block.row_stride + k;
        narrow[r][half] = _mm256_add_epi16(narrow[r][half], _mm256_maddubs_epi16(low, four_inputs(at)));
        narrow[r][half] = _mm256_add_epi16(narrow[r][half], _mm256_maddubs_epi16(high, four_inputs(at + 4)));
      }
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
    for (int half = 0; half < 2; ++half)
      sums[r][half] = _mm256_add_epi32(sums[r][half], _mm256_madd_epi16(narrow[r][half], ones));
}

template <int R>
void multiply_nibbles(const ProductBlock& block, const char* w, float* to) {
  __m256 totals[R][2];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) totals[r][0] = totals[r][1] = _mm256_setzero_ps();
  for (int64_t k = 0, group = 0; k < block.depth; k += block.group, ++group) {
    const char* const scales = w;
    w += kNibbleHeader;
    __m256i sums[R][2];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
    for (int64_t i = 0; i < block.group; i += kInputsIn16Bits, w += kInputsIn16Bits * 8)
      multiply_32<R>(block, static_cast<const char*>(block.input) + k + i, w, sums);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256 scale = widen_bf16(scales + 16 * half), minimum = widen_bf16(scales + 32 + 16 * half);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256 x_scale = _mm256_set1_ps(block.input_scales[r * block.scale_stride + k / kGroup]);
        const __m256 x_sum = _mm256_set1_ps(block.input_sums[r * block.sum_stride + group]);
        totals[r][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[r][half]), _mm256_mul_ps(scale, x_scale),
                                          totals[r][half]);
        totals[r][half] = _mm256_fmadd_ps(minimum, x_sum, totals[r][half]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
    for (int half = 0; half < 2; ++half)
      _mm256_store_ps(to + r * block.panels * 16 + 8 * half, totals[r][half]);
}

// Two rows at a time: their sums and one register of weights fill the sixteen.
void multiply_nibble_rows(ProductBlock block, const char* w, float* to) {
  for (; block.rows > 0; block.rows -= 2) {
    if (block.rows == 1) return multiply_nibbles<1>(block, w, to);
    multiply_nibbles<2>(block, w, to);
    block.input = static_cast<const char*>(block.input) + 2 * block.row_stride;
    block.input_scales += 2 * block.scale_stride;
    block.input_sums += 2 * block.sum_stride;
    to += 2 * block.panels * 16;
  }
}

}  // namespace

void avx2_multiply_u4(const ProductBlock& block) {
  for (int panel = 0; panel < block.panels; ++panel)
    multiply_nibble_rows(block, block.weights + panel * block.panel_stride, block.sums + panel * 16);
}

}  // namespace shoal::ops::cpu

#endif
