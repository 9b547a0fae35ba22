// bf16 products by the AMX matrix unit. f32 products stay with AVX-512.
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_amx_block.h"

namespace shoal::ops::cpu {
namespace {

// The tile registers: 0..3 sums, 4..5 input rows, 6..7 weights. GCC's intrinsics paste their arguments into
// the register names as text, so a template parameter cannot be one: hence the instructions themselves.
struct TileRegisters {
  template <int T>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(T));
  }
  template <int T>
  static void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  static void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(T) : "memory");
  }
  template <int Sums, int Rows, int Weights>
  static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(Rows), "i"(Weights));
  }
  static void prefetch(const char* at) { _mm_prefetch(at, _MM_HINT_T0); }
};

struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr TileShapes kShapes;

void enter() { _tile_loadconfig(&kShapes); }

void leave() { _tile_release(); }

int two_panels(int) { return 2; }

}  // namespace

const MatrixKernels kAmxMatrixKernels = {
    .f32 = {.most_rows = 6, .row_step = 1, .panels_for = avx512_panels_for, .multiply = avx512_multiply_f32},
    .bf16 = {.most_rows = 32,
             .row_step = 16,
             .panels_for = two_panels,
             .multiply = multiply_tiles<TileRegisters>},
    .i8 = {.most_rows = 12, .row_step = 1, .panels_for = vnni_panels_for, .multiply = vnni_multiply_i8},
    .u4 = {.most_rows = 12, .row_step = 1, .panels_for = nibble_panels_for, .multiply = vnni_multiply_u4},
    .reads_bf16 = true,
    .enter = enter,
    .leave = leave,
};

}  // namespace shoal::ops::cpu

#endif
