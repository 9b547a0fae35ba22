// bf16 products by VDPBF16PS, which adds both products of a pair of k to 16 outputs at once. Against the
// multiply-adds of matrix_avx512.cc on one Zen 4 core (EPYC 9004, memory at 31 GB/s, weights cold): 1
// row 25..28 GB/s against 21..26, 8 rows 16..20 against 10, 64 rows and more 205 GFLOP/s against 95. So it
// serves every number of rows.
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {

constexpr int kMostRows = 12;
constexpr int64_t kPrefetchBytes = 2048;

template <int R, int P>
void multiply(const ProductBlock& block) {
  __m512 sums[R][P];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sums[r][p] = _mm512_setzero_ps();
  const char* w = block.weights;
  for (int64_t tap = 0; tap < block.taps; ++tap) {
    const char* x = static_cast<const char*>(block.input) + tap * block.tap_stride * 2;
    for (int64_t k = 0; k < block.depth; k += 2, w += 64) {
      __m512bh pairs[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const char* at = w + p * block.panel_stride;
        pairs[p] = (__m512bh)_mm512_load_si512(at);
        _mm_prefetch(at + kPrefetchBytes, _MM_HINT_T0);
      }
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        int pair;
        __builtin_memcpy(&pair, x + (r * block.row_stride + k) * 2, sizeof pair);
        const __m512bh value = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) sums[r][p] = _mm512_dpbf16_ps(sums[r][p], pairs[p], value);
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) _mm512_store_ps(block.sums + (r * P + p) * 16, sums[r][p]);
}

// One or two rows are bound by memory, which two streams feed best (28 of 33 GB/s on one Zen 4 core; four:
// 26).
int panels_for(int rows) { return rows > 2 && rows <= 6 ? 4 : 2; }

// 24 sums at most, of 32 registers.
template <int R>
void by_panels(const ProductBlock& block) {
  if constexpr (R <= 6) {
    if (block.panels == 4) return multiply<R, 4>(block);
    if (block.panels == 3) return multiply<R, 3>(block);
  }
  if (block.panels == 2) return multiply<R, 2>(block);
  multiply<R, 1>(block);
}

template <int R = kMostRows>
void by_rows(const ProductBlock& block) {
  if constexpr (R > 1)
    if (block.rows < R) return by_rows<R - 1>(block);
  by_panels<R>(block);
}

}  // namespace

const MatrixKernels kAvx512Bf16MatrixKernels = {
    .f32 = {.most_rows = 6, .row_step = 1, .panels_for = avx512_panels_for, .multiply = avx512_multiply_f32},
    .bf16 = {.most_rows = kMostRows, .row_step = 1, .panels_for = panels_for, .multiply = by_rows<>},
    .i8 = {.most_rows = kMostVnniRows,
           .row_step = 1,
           .panels_for = vnni_panels_for,
           .multiply = vnni_multiply_i8},
    .u4 = {.most_rows = kMostVnniRows,
           .row_step = 1,
           .panels_for = nibble_panels_for,
           .multiply = vnni_multiply_u4},
    .reads_bf16 = true,
    .enter = nullptr,
    .leave = nullptr,
};

}  // namespace shoal::ops::cpu

#endif
