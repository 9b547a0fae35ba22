// The walk over AMX tiles, run with a model of the instructions on any CPU.
#include "ops/cpu/gemm/matrix_amx_block.h"

#include <cmath>
#include <cstring>

#include "ops/matrix_testing.h"

namespace shoal::ops::cpu {
namespace {

// Eight tiles of 16 rows x 64 bytes, and the instructions as Intel's manual defines them.
struct ModelTiles {
  alignas(64) static inline char tiles[8][16][64];

  template <int T>
  static void zero() {
    std::memset(tiles[T], 0, sizeof tiles[T]);
  }
  template <int T>
  static void load(const void* from, int64_t stride) {
    for (int row = 0; row < 16; ++row)
      std::memcpy(tiles[T][row], static_cast<const char*>(from) + row * stride, 64);
  }
  template <int T>
  static void store(void* to, int64_t stride) {
    for (int row = 0; row < 16; ++row) std::memcpy(static_cast<char*>(to) + row * stride, tiles[T][row], 64);
  }
  // TDPBF16PS: pairs of k from row m of `Rows` and row k of `Weights`; the even and the odd elements of the
  // pairs are two chains from zero, their sum is added to the tile.
  template <int Sums, int Rows, int Weights>
  static void multiply() {
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        float even = 0, odd = 0;
        for (int pair = 0; pair < 16; ++pair) {
          even = std::fma(element(Rows, m, 2 * pair), element(Weights, pair, 2 * n), even);
          odd = std::fma(element(Rows, m, 2 * pair + 1), element(Weights, pair, 2 * n + 1), odd);
        }
        float sum;
        std::memcpy(&sum, &tiles[Sums][m][n * 4], 4);
        sum += even + odd;
        std::memcpy(&tiles[Sums][m][n * 4], &sum, 4);
      }
    }
  }
  static void prefetch(const char*) {}

  static float element(int tile, int row, int column) {
    Bf16 bits;
    std::memcpy(&bits, &tiles[tile][row][column * 2], 2);
    return bf16_to_float(bits);
  }
};

TEST(AmxBlock, GivesTheBitsOfThePortableKernel) {
  constexpr int64_t kMostRows = 32, kTaps = 3, kDepth = 96, kStride = kDepth + 32;
  std::vector<Bf16> x;
  std::vector<float> wide_x;
  for (const float v : random_values((2 * kMostRows + kTaps) * kStride, 1)) {
    x.push_back(float_to_bf16(v));
    wide_x.push_back(bf16_to_float(x.back()));
  }
  std::vector<Bf16> w;
  for (const float v : random_values(2 * kTaps * kDepth * 16, 2)) w.push_back(float_to_bf16(v));
  for (const int64_t taps : {int64_t{1}, kTaps}) {
    for (const int64_t depth : {int64_t{32}, kDepth}) {
      for (const int panels : {1, 2}) {
        for (const int rows : {1, 2, 15, 16, 17, 31, 32}) {
          alignas(64) float got[kMostSums], want[kMostSums];
          ProductBlock block{.input = x.data(),
                             .row_stride = kStride,
                             .tap_stride = 2 * kStride,
                             .weights = reinterpret_cast<const char*>(w.data()),
                             .panel_stride = kTaps * kDepth * 32,
                             .taps = taps,
                             .depth = depth,
                             .rows = rows,
                             .panels = panels,
                             .sums = got};
          multiply_tiles<ModelTiles>(block);
          block.input = wide_x.data();
          block.sums = want;
          kPortableMatrixKernels.bf16.multiply(block);
          SCOPED_TRACE(testing::Message() << rows << " rows, " << panels << " panels, depth " << depth);
          const size_t count = static_cast<size_t>(rows * panels * 16);
          expect_same_bits({got, got + count}, {want, want + count});
        }
      }
    }
  }
}

// Rows after the last one are read but have no effect.
TEST(AmxBlock, MemoryAfterTheLastRowDoesNotMatter) {
  constexpr int64_t kDepth = 32;
  std::vector<Bf16> x(32 * kDepth, 0x7fc0);  // NaN
  for (int64_t k = 0; k < kDepth; ++k) x[static_cast<size_t>(k)] = float_to_bf16(1.0f);
  std::vector<Bf16> w(kDepth * 16, float_to_bf16(2.0f));
  alignas(64) float sums[kMostSums];
  multiply_tiles<ModelTiles>({.input = x.data(),
                              .row_stride = kDepth,
                              .tap_stride = 0,
                              .weights = reinterpret_cast<const char*>(w.data()),
                              .panel_stride = 0,
                              .taps = 1,
                              .depth = kDepth,
                              .rows = 1,
                              .panels = 1,
                              .sums = sums});
  EXPECT_THAT(std::vector<float>(sums, sums + 16), testing::Each(64.0f));
}

}  // namespace
}  // namespace shoal::ops::cpu
