// Matrix kernels of AVX2: a panel is two registers; 3 rows x 2 chains x 2 halves, or 6 rows of one half, are
// 12 of the 16.
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kPrefetchBytes = 1024;

template <int R>
void multiply_f32(const ProductBlock& block, const char* w, float* sums) {
  __m256 even[R][2], odd[R][2];
#pragma GCC unroll 3
  for (int r = 0; r < R; ++r) even[r][0] = even[r][1] = odd[r][0] = odd[r][1] = _mm256_setzero_ps();
  for (int64_t tap = 0; tap < block.taps; ++tap) {
    const float* x = static_cast<const float*>(block.input) + tap * block.tap_stride;
    for (int64_t k = 0; k < block.depth; k += 2, w += 128) {
      const float* at = reinterpret_cast<const float*>(w);
      _mm_prefetch(w + kPrefetchBytes, _MM_HINT_T0);
      _mm_prefetch(w + kPrefetchBytes + 64, _MM_HINT_T0);
      __m256 low = _mm256_load_ps(at), high = _mm256_load_ps(at + 8);
#pragma GCC unroll 3
      for (int r = 0; r < R; ++r) {
        const __m256 value = _mm256_broadcast_ss(x + r * block.row_stride + k);
        even[r][0] = _mm256_fmadd_ps(low, value, even[r][0]);
        even[r][1] = _mm256_fmadd_ps(high, value, even[r][1]);
      }
      low = _mm256_load_ps(at + 16), high = _mm256_load_ps(at + 24);
#pragma GCC unroll 3
      for (int r = 0; r < R; ++r) {
        const __m256 value = _mm256_broadcast_ss(x + r * block.row_stride + k + 1);
        odd[r][0] = _mm256_fmadd_ps(low, value, odd[r][0]);
        odd[r][1] = _mm256_fmadd_ps(high, value, odd[r][1]);
      }
    }
  }
#pragma GCC unroll 3
  for (int r = 0; r < R; ++r) {
    float* to = sums + r * block.panels * 16;
    _mm256_store_ps(to, _mm256_add_ps(even[r][0], odd[r][0]));
    _mm256_store_ps(to + 8, _mm256_add_ps(even[r][1], odd[r][1]));
  }
}

// H halves of a panel (8 outputs each), the first at w.
template <int R, int H>
void multiply_halves(const ProductBlock& block, const char* w, float* sums) {
  const __m256 high_half = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000u)));
  const int64_t row_sums = block.panels * 16;
  for (int r = 0; r < R; ++r)
    for (int h = 0; h < H; ++h) _mm256_store_ps(sums + r * row_sums + h * 8, _mm256_setzero_ps());
  for (int64_t tap = 0; tap < block.taps; ++tap) {
    const float* x = static_cast<const float*>(block.input) + tap * block.tap_stride;
    for (int64_t begin = 0; begin < block.depth; begin += 32) {
      __m256 even[R][H], odd[R][H];
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) even[r][h] = odd[r][h] = _mm256_setzero_ps();
      for (int64_t k = begin; k < begin + 32; k += 2, w += 64) {
        _mm_prefetch(w + kPrefetchBytes, _MM_HINT_T0);
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
          const __m256 pairs = _mm256_load_ps(reinterpret_cast<const float*>(w) + h * 8);
          const __m256 w_even = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
          const __m256 w_odd = _mm256_and_ps(pairs, high_half);
#pragma GCC unroll 6
          for (int r = 0; r < R; ++r) {
            const float* at = x + r * block.row_stride + k;
            even[r][h] = _mm256_fmadd_ps(w_even, _mm256_broadcast_ss(at), even[r][h]);
            odd[r][h] = _mm256_fmadd_ps(w_odd, _mm256_broadcast_ss(at + 1), odd[r][h]);
          }
        }
      }
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
          float* to = sums + r * row_sums + h * 8;
          _mm256_store_ps(to, _mm256_add_ps(_mm256_load_ps(to), _mm256_add_ps(even[r][h], odd[r][h])));
        }
    }
  }
}

// Few rows are bound by memory and take the panel in one pass; more rows, in two, the second out of the
// cache: six rows of half a panel have fewer loads per multiply-add than three of a whole one.
template <int R>
void multiply_bf16(const ProductBlock& block, const char* w, float* sums) {
  if constexpr (R <= 2) {
    multiply_halves<R, 2>(block, w, sums);
  } else {
    multiply_halves<R, 1>(block, w, sums);
    multiply_halves<R, 1>(block, w + 32, sums + 8);
  }
}

struct F32 {
  static constexpr int kMostRows = 3;
  template <int R>
  static void run(const ProductBlock& block, const char* w, float* sums) {
    multiply_f32<R>(block, w, sums);
  }
};

struct Bf16 {
  static constexpr int kMostRows = 6;
  template <int R>
  static void run(const ProductBlock& block, const char* w, float* sums) {
    multiply_bf16<R>(block, w, sums);
  }
};

template <typename Kernel, int R = Kernel::kMostRows>
void by_rows(const ProductBlock& block, const char* w, float* sums) {
  if constexpr (R > 1)
    if (block.rows < R) return by_rows<Kernel, R - 1>(block, w, sums);
  Kernel::template run<R>(block, w, sums);
}

template <typename Kernel>
void multiply(const ProductBlock& block) {
  for (int panel = 0; panel < block.panels; ++panel)
    by_rows<Kernel>(block, block.weights + panel * block.panel_stride, block.sums + panel * 16);
}

int one_panel(int) { return 1; }

}  // namespace

const MatrixKernels kAvx2MatrixKernels = {
    .f32 = {.most_rows = F32::kMostRows, .row_step = 1, .panels_for = one_panel, .multiply = multiply<F32>},
    .bf16 = {.most_rows = Bf16::kMostRows,
             .row_step = 1,
             .panels_for = one_panel,
             .multiply = multiply<Bf16>},
    .i8 = {.most_rows = kMostIntegerRows,
           .row_step = 1,
           .panels_for = one_panel,
           .multiply = avx2_multiply_i8},
    .u4 = {.most_rows = kMostIntegerRows,
           .row_step = 1,
           .panels_for = one_panel,
           .multiply = avx2_multiply_u4},
    .reads_bf16 = false,
    .enter = nullptr,
    .leave = nullptr,
};

}  // namespace shoal::ops::cpu

#endif
