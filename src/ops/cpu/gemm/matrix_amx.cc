// Products by the AMX matrix unit: bf16, and 8- and 4-bit ones of more than a few rows. f32 products stay
// with AVX-512.
#if defined(__x86_64__)

#include <immintrin.h>

#include "ops/cpu/gemm/matrix_amx_integers.h"

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
  static void prefetch(const char* at) { _mm_prefetch(at, _MM_HINT_T0); }
  struct Bf16Product {
    template <int Sums, int Rows, int Weights>
    static void multiply() {
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(Rows), "i"(Weights));
    }
  };
  struct IntegerProduct {
    template <int Sums, int Rows, int Weights>
    static void multiply() {
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(Rows), "i"(Weights));
    }
  };

  static void add_integers(const int32_t* products, int32_t offset, float scale, float* sums) {
    const __m512i integers = _mm512_sub_epi32(_mm512_load_si512(products), _mm512_set1_epi32(offset));
    const __m512 sum =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(integers), _mm512_set1_ps(scale), _mm512_load_ps(sums));
    _mm512_store_ps(sums, sum);
  }

  static void unpack(const char* from, char* low, char* high) {
    const __m512i low_bits = _mm512_set1_epi8(15), both = _mm512_load_si512(from);
    _mm_prefetch(from + kNibblePrefetch, _MM_HINT_T0);
    _mm512_store_si512(low, _mm512_and_si512(both, low_bits));
    _mm512_store_si512(high, _mm512_and_si512(_mm512_srli_epi16(both, 4), low_bits));
  }
  class NibbleScales {
   public:
    explicit NibbleScales(const char* header) : scale_(widened(header)), minimum_(widened(header + 32)) {}

    void add(const int32_t* products, float scale, float sum, float* sums) const {
      const __m512 factor = _mm512_mul_ps(scale_, _mm512_set1_ps(scale));
      const __m512 product = _mm512_cvtepi32_ps(_mm512_load_si512(products));
      const __m512 scaled = _mm512_fmadd_ps(product, factor, _mm512_load_ps(sums));
      _mm512_store_ps(sums, _mm512_fmadd_ps(minimum_, _mm512_set1_ps(sum), scaled));
    }

   private:
    static __m512 widened(const char* at) {
      const __m256i bits = _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
    }
    __m512 scale_, minimum_;
  };

 private:
  static constexpr int64_t kNibblePrefetch = 1024;
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

// Of as few rows as VPDPBUSD takes at once it is no slower: a tile's sums go through memory.
int integer_panels_for(int rows) { return rows <= kMostVnniRows ? vnni_panels_for(rows) : 2; }
void multiply_integers(const ProductBlock& block) {
  block.rows <= kMostVnniRows ? vnni_multiply_i8(block) : multiply_integer_tiles<TileRegisters>(block);
}

int panels_of_nibbles_for(int rows) { return rows <= kMostVnniRows ? nibble_panels_for(rows) : 2; }
void multiply_nibbles(const ProductBlock& block) {
  block.rows <= kMostVnniRows ? vnni_multiply_u4(block) : multiply_nibble_tiles<TileRegisters>(block);
}

}  // namespace

const MatrixKernels kAmxMatrixKernels = {
    .f32 = {.most_rows = 6, .row_step = 1, .panels_for = avx512_panels_for, .multiply = avx512_multiply_f32},
    .bf16 = {.most_rows = 32,
             .row_step = 16,
             .panels_for = two_panels,
             .multiply = multiply_tiles<TileRegisters>},
    .i8 = {.most_rows = 32, .row_step = 16, .panels_for = integer_panels_for, .multiply = multiply_integers},
    .u4 = {.most_rows = 32,
           .row_step = 16,
           .panels_for = panels_of_nibbles_for,
           .multiply = multiply_nibbles},
    .reads_bf16 = true,
    .enter = enter,
    .leave = leave,
};

}  // namespace shoal::ops::cpu

#endif
