// 8-bit products by VPMADDWD: weights and inputs as 16-bit integers, whose pairs are multiplied and added
// exactly.
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kPrefetchBytes = 1024;

// Pairs of neighbouring sums of a panel, 4 outputs a register, become 16 sums in order.
inline void add_pairs(const __m256i* sums, __m256i& low, __m256i& high) {
  constexpr int kOrder = 0b11'01'10'00;
  low = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[0], sums[1]), kOrder);
  high = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[2], sums[3]), kOrder);
}

template <int R>
void multiply(const ProductBlock& block, const char* w, float* to) {
  __m256 low[R], high[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) low[r] = high[r] = _mm256_setzero_ps();
  for (int64_t group = 0; group < block.depth / kGroup; ++group) {
    alignas(32) int16_t x[R][kGroup];
    __m256i sums[R][4];
    for (int r = 0; r < R; ++r) {
      const char* at = static_cast<const char*>(block.input) + r * block.row_stride + group * kGroup;
      for (int64_t i = 0; i < kGroup; i += 16)
        _mm256_store_si256(reinterpret_cast<__m256i*>(x[r] + i),
                           _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i))));
      for (int c = 0; c < 4; ++c) sums[r][c] = _mm256_setzero_si256();
    }
    for (int64_t k = 0; k < kGroup; k += 4, w += 64) {
      _mm_prefetch(w + kPrefetchBytes, _MM_HINT_T0);
      __m256i inputs[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        long long four;
        __builtin_memcpy(&four, x[r] + k, sizeof four);
        inputs[r] = _mm256_set1_epi64x(four);
      }
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        const __m256i weights =
            _mm256_cvtepu8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(w + 16 * c)));
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
          sums[r][c] = _mm256_add_epi32(sums[r][c], _mm256_madd_epi16(weights, inputs[r]));
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      __m256i first, second;
      add_pairs(sums[r], first, second);
      const __m256i offset = _mm256_set1_epi32(block.input_offsets[r * block.scale_stride + group]);
      const __m256 scale = _mm256_set1_ps(block.input_scales[r * block.scale_stride + group]);
      low[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(first, offset)), scale, low[r]);
      high[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(second, offset)), scale, high[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    _mm256_store_ps(to + r * block.panels * 16, low[r]);
    _mm256_store_ps(to + r * block.panels * 16 + 8, high[r]);
  }
}

// Two rows at a time: their sums, weights and inputs fill the sixteen registers.
void multiply_rows(ProductBlock block, const char* w, float* to) {
  for (; block.rows > 0; block.rows -= 2) {
    if (block.rows == 1) return multiply<1>(block, w, to);
    multiply<2>(block, w, to);
    block.input = static_cast<const char*>(block.input) + 2 * block.row_stride;
    block.input_scales += 2 * block.scale_stride;
    block.input_offsets += 2 * block.scale_stride;
    to += 2 * block.panels * 16;
  }
}

}  // namespace

void avx2_multiply_i8(const ProductBlock& block) {
  for (int panel = 0; panel < block.panels; ++panel)
    multiply_rows(block, block.weights + panel * block.panel_stride, block.sums + panel * 16);
}

}  // namespace shoal::ops::cpu

#endif
