// Sums in AMX tiles, and the walk over tiles of a bf16 product, apart from the instructions: a test runs them
// on any machine with a model in their place.
#pragma once

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {  // each instruction set that includes this has its own

constexpr int64_t kTileRows = 16, kTileBytes = 1024, kTileRowBytes = 64;

// The sums of up to 2 x 2 tiles: 32 rows x 32 outputs from 4 loads and 4 multiplications a step. `Tiles` has
// eight tiles of 16 rows x 64 bytes: zero<T>(), load<T>(from, stride), store<T>(to, stride) and
// prefetch(address); `Product` has multiply<Sums, Rows, Weights>(), which is one of the TDP instructions.
//
// Whole tiles of input are read: up to 31 rows beyond the last one, and 32 bytes after them, must be
// readable; whatever they hold stays in sums that nobody uses.
template <typename Tiles, typename Product, bool kTwoTilesOfRows, bool kTwoPanels>
struct TileSums {
  static constexpr int64_t kWidth = kTwoPanels ? 32 : 16;  // sums of one row

  static void zero() {
    Tiles::template zero<0>();
    if constexpr (kTwoPanels) Tiles::template zero<1>();
    if constexpr (kTwoTilesOfRows) Tiles::template zero<2>();
    if constexpr (kTwoTilesOfRows && kTwoPanels) Tiles::template zero<3>();
  }
  // x: 64 bytes of each row. first, second: a tile of weights of each panel.
  static void add(const char* x, int64_t row_bytes, const char* first, const char* second) {
    Tiles::template load<4>(x, row_bytes);
    Tiles::template load<6>(first, kTileRowBytes);
    Product::template multiply<0, 4, 6>();
    if constexpr (kTwoPanels) {
      Tiles::template load<7>(second, kTileRowBytes);
      Product::template multiply<1, 4, 7>();
    }
    if constexpr (kTwoTilesOfRows) {
      Tiles::template load<5>(x + kTileRows * row_bytes, row_bytes);
      Product::template multiply<2, 5, 6>();
      if constexpr (kTwoPanels) Product::template multiply<3, 5, 7>();
    }
  }
  // to: [32][kWidth] values of four bytes.
  static void store(void* to) {
    constexpr int64_t kStride = kWidth * 4;
    char* const at = static_cast<char*>(to);
    Tiles::template store<0>(at, kStride);
    if constexpr (kTwoPanels) Tiles::template store<1>(at + kTileRowBytes, kStride);
    if constexpr (kTwoTilesOfRows) Tiles::template store<2>(at + kTileRows * kStride, kStride);
    if constexpr (kTwoTilesOfRows && kTwoPanels)
      Tiles::template store<3>(at + kTileRows * kStride + kTileRowBytes, kStride);
  }
};

// Weights ahead of the tiles of a step.
template <typename Tiles, bool kTwoPanels>
void prefetch_tiles(const char* w, int64_t panel_stride) {
  constexpr int64_t kAhead = 4 * kTileBytes;  // of a panel; a tile takes 16 cycles, memory about 300
  for (int64_t line = 0; line < kTileBytes; line += kTileRowBytes) {
    Tiles::prefetch(w + kAhead + line);
    if constexpr (kTwoPanels) Tiles::prefetch(w + panel_stride + kAhead + line);
  }
}

template <typename Tiles, bool kTwoTilesOfRows, bool kTwoPanels>
void multiply_tiles_of(const ProductBlock& block) {
  using Sums = TileSums<Tiles, typename Tiles::Bf16Product, kTwoTilesOfRows, kTwoPanels>;
  constexpr int64_t kDepth = 32;
  Sums::zero();
  const int64_t row_bytes = block.row_stride * 2;
  const char* w = block.weights;
  for (int64_t tap = 0; tap < block.taps; ++tap) {
    const char* x = static_cast<const char*>(block.input) + tap * block.tap_stride * 2;
    for (int64_t k = 0; k < block.depth; k += kDepth, w += kTileBytes) {
      prefetch_tiles<Tiles, kTwoPanels>(w, block.panel_stride);
      Sums::add(x + k * 2, row_bytes, w, w + block.panel_stride);
    }
  }
  Sums::store(block.sums);
}

// Calls multiply<two tiles of rows, two panels>(). block: at most 32 rows and 2 panels.
template <typename Multiply>
void by_tiles(const ProductBlock& block, Multiply multiply) {
  if (block.rows > kTileRows)
    block.panels == 2 ? multiply.template operator()<true, true>()
                      : multiply.template operator()<true, false>();
  else
    block.panels == 2 ? multiply.template operator()<false, true>()
                      : multiply.template operator()<false, false>();
}

template <typename Tiles>
void multiply_tiles(const ProductBlock& block) {
  by_tiles(block, [&]<bool kTwoTilesOfRows, bool kTwoPanels> {
    multiply_tiles_of<Tiles, kTwoTilesOfRows, kTwoPanels>(block);
  });
}

}  // namespace
}  // namespace shoal::ops::cpu
