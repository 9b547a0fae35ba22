// The walk over tiles of a bf16 product, apart from the instructions: a test runs it on any machine with a
// model of TDPBF16PS in their place.
#pragma once

#include "ops/cpu/gemm/matrix_kernels.h"

namespace shoal::ops::cpu {
namespace {  // each instruction set that includes this has its own

// `Tiles` has eight tiles of 16 rows x 64 bytes: zero<T>(), load<T>(from, stride), store<T>(to, stride),
// multiply<Sums, Rows, Weights>(), which is TDPBF16PS, and prefetch(address).
//
// 2 x 2 tiles of sums: 32 rows x 32 outputs from 4 loads and 4 multiplications per 32 k. Whole tiles of input
// are read: up to 31 rows beyond the last one must be readable; whatever they hold stays in sums that nobody
// uses.
template <typename Tiles, bool kTwoTilesOfRows, bool kTwoPanels>
void multiply_tiles_of(const ProductBlock& block) {
  constexpr int64_t kTileRows = 16, kDepth = 32, kWeightTile = 1024;
  constexpr int64_t kAhead = 4 * kWeightTile;  // of a panel; a tile takes 16 cycles, memory about 300
  Tiles::template zero<0>();
  if constexpr (kTwoPanels) Tiles::template zero<1>();
  if constexpr (kTwoTilesOfRows) Tiles::template zero<2>();
  if constexpr (kTwoTilesOfRows && kTwoPanels) Tiles::template zero<3>();
  const int64_t row_bytes = block.row_stride * 2;
  const char* w = block.weights;
  for (int64_t tap = 0; tap < block.taps; ++tap) {
    const char* x = static_cast<const char*>(block.input) + tap * block.tap_stride * 2;
    for (int64_t k = 0; k < block.depth; k += kDepth, w += kWeightTile) {
      for (int64_t line = 0; line < kWeightTile; line += 64) {
        Tiles::prefetch(w + kAhead + line);
        if constexpr (kTwoPanels) Tiles::prefetch(w + block.panel_stride + kAhead + line);
      }
      Tiles::template load<4>(x + k * 2, row_bytes);
      Tiles::template load<6>(w, 64);
      Tiles::template multiply<0, 4, 6>();
      if constexpr (kTwoPanels) {
        Tiles::template load<7>(w + block.panel_stride, 64);
        Tiles::template multiply<1, 4, 7>();
      }
      if constexpr (kTwoTilesOfRows) {
        Tiles::template load<5>(x + k * 2 + kTileRows * row_bytes, row_bytes);
        Tiles::template multiply<2, 5, 6>();
        if constexpr (kTwoPanels) Tiles::template multiply<3, 5, 7>();
      }
    }
  }
  constexpr int64_t kWidth = kTwoPanels ? 32 : 16;  // sums of one row
  constexpr int64_t kStride = kWidth * 4;
  Tiles::template store<0>(block.sums, kStride);
  if constexpr (kTwoPanels) Tiles::template store<1>(block.sums + 16, kStride);
  if constexpr (kTwoTilesOfRows) Tiles::template store<2>(block.sums + kTileRows * kWidth, kStride);
  if constexpr (kTwoTilesOfRows && kTwoPanels)
    Tiles::template store<3>(block.sums + kTileRows * kWidth + 16, kStride);
}

// At most 32 rows and 2 panels.
template <typename Tiles>
void multiply_tiles(const ProductBlock& block) {
  if (block.rows > 16)
    block.panels == 2 ? multiply_tiles_of<Tiles, true, true>(block)
                      : multiply_tiles_of<Tiles, true, false>(block);
  else
    block.panels == 2 ? multiply_tiles_of<Tiles, false, true>(block)
                      : multiply_tiles_of<Tiles, false, false>(block);
}

}  // namespace
}  // namespace shoal::ops::cpu
