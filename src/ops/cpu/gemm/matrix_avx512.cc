// Matrix kernels of AVX-512: one register holds a panel, R x P of them the chains of R rows and P panels.
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {

// Weights arrive from memory faster when prefetched early: the hardware prefetcher stops at page ends.
constexpr int64_t kPrefetchBytes = 1024;

template <int R, int P>
void multiply_f32(const ProductBlock& block) {
  __m512 even[R][P], odd[R][P];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) even[r][p] = odd[r][p] = _mm512_setzero_ps();
  const char* w = block.weights;
  for (int64_t tap = 0; tap < block.taps; ++tap) {
    const float* x = static_cast<const float*>(block.input) + tap * block.tap_stride;
    for (int64_t k = 0; k < block.depth; k += 2, w += 128) {
      __m512 w_even[P], w_odd[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const char* at = w + p * block.panel_stride;
        w_even[p] = _mm512_load_ps(at);
        w_odd[p] = _mm512_load_ps(at + 64);
        _mm_prefetch(at + kPrefetchBytes, _MM_HINT_T0);
        _mm_prefetch(at + kPrefetchBytes + 64, _MM_HINT_T0);
      }
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        const __m512 x_even = _mm512_set1_ps(x[r * block.row_stride + k]);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) even[r][p] = _mm512_fmadd_ps(w_even[p], x_even, even[r][p]);
      }
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        const __m512 x_odd = _mm512_set1_ps(x[r * block.row_stride + k + 1]);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) odd[r][p] = _mm512_fmadd_ps(w_odd[p], x_odd, odd[r][p]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p)
      _mm512_store_ps(block.sums + (r * P + p) * 16, _mm512_add_ps(even[r][p], odd[r][p]));
}

template <int R, int P>
void multiply_bf16(const ProductBlock& block) {
  const __m512i high_half = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int i = 0; i < R * P; ++i) _mm512_store_ps(block.sums + i * 16, _mm512_setzero_ps());
  const char* w = block.weights;
  for (int64_t tap = 0; tap < block.taps; ++tap) {
    const float* x = static_cast<const float*>(block.input) + tap * block.tap_stride;
    for (int64_t begin = 0; begin < block.depth; begin += 32) {
      __m512 even[R][P], odd[R][P];
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) even[r][p] = odd[r][p] = _mm512_setzero_ps();
      for (int64_t k = begin; k < begin + 32; k += 2, w += 64) {
        __m512 w_even[P], w_odd[P];
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) {
          const char* at = w + p * block.panel_stride;
          const __m512i pairs = _mm512_load_si512(at);
          w_even[p] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
          w_odd[p] = _mm512_castsi512_ps(_mm512_and_si512(pairs, high_half));
          _mm_prefetch(at + kPrefetchBytes, _MM_HINT_T0);
        }
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
          const __m512 x_even = _mm512_set1_ps(x[r * block.row_stride + k]);
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) even[r][p] = _mm512_fmadd_ps(w_even[p], x_even, even[r][p]);
          const __m512 x_odd = _mm512_set1_ps(x[r * block.row_stride + k + 1]);
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) odd[r][p] = _mm512_fmadd_ps(w_odd[p], x_odd, odd[r][p]);
        }
      }
      // The sums rest in L1: 3 operations per 32 multiply-adds.
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) {
          float* sums = block.sums + (r * P + p) * 16;
          _mm512_store_ps(sums, _mm512_add_ps(_mm512_load_ps(sums), _mm512_add_ps(even[r][p], odd[r][p])));
        }
    }
  }
}

struct F32 {
  template <int R, int P>
  static void run(const ProductBlock& block) {
    multiply_f32<R, P>(block);
  }
};

struct Bf16 {
  template <int R, int P>
  static void run(const ProductBlock& block) {
    multiply_bf16<R, P>(block);
  }
};

constexpr int kMostRows = 6;

// 24 chains at most, of 32 registers.
template <typename Kernel, int R>
void by_panels(const ProductBlock& block) {
  if constexpr (R <= 3) {
    if (block.panels == 4) return Kernel::template run<R, 4>(block);
    if (block.panels == 3) return Kernel::template run<R, 3>(block);
  }
  if (block.panels == 2) return Kernel::template run<R, 2>(block);
  Kernel::template run<R, 1>(block);
}

template <typename Kernel, int R = kMostRows>
void by_rows(const ProductBlock& block) {
  if constexpr (R > 1)
    if (block.rows < R) return by_rows<Kernel, R - 1>(block);
  by_panels<Kernel, R>(block);
}

}  // namespace

int avx512_panels_for(int rows) { return rows == 3 ? 4 : 2; }
void avx512_multiply_f32(const ProductBlock& block) { by_rows<F32>(block); }
void avx512_multiply_bf16(const ProductBlock& block) { by_rows<Bf16>(block); }

const MatrixKernels kAvx512MatrixKernels = {
    .f32 = {.most_rows = kMostRows,
            .row_step = 1,
            .panels_for = avx512_panels_for,
            .multiply = avx512_multiply_f32},
    .bf16 = {.most_rows = kMostRows,
             .row_step = 1,
             .panels_for = avx512_panels_for,
             .multiply = avx512_multiply_bf16},
    .i8 = {.most_rows = kMostIntegerRows,
           .row_step = 1,
           .panels_for = one_panel_for,
           .multiply = avx2_multiply_i8},
    .u4 = {.most_rows = kMostIntegerRows,
           .row_step = 1,
           .panels_for = one_panel_for,
           .multiply = avx2_multiply_u4},
    .reads_bf16 = false,
    .enter = nullptr,
    .leave = nullptr,
};

}  // namespace shoal::ops::cpu

#endif
