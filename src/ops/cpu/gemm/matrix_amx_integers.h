// The walks over tiles of products of 8- and 4-bit weights: matrix_amx_block.h, with TDPBSUD, which
// multiplies signed inputs by unsigned weights, and after each group of weights the scales.
#pragma once

#include "ops/cpu/gemm/matrix_amx_block.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kTileDepth = 64;  // of bytes

inline void clear_sums(const ProductBlock& block) {
  __builtin_memset(block.sums, 0, static_cast<size_t>(block.rows * block.panels) * 16 * sizeof(float));
}

// `Tiles` has, beside what bf16 takes, IntegerProduct::multiply, which is TDPBSUD, and
// add_integers(products, offset, scale, sums): of 16 outputs, sums + scale * (products - offset), in one
// fused multiply-add.
template <typename Tiles, bool kTwoTilesOfRows, bool kTwoPanels>
void multiply_integer_tiles_of(const ProductBlock& block) {
  using Sums = TileSums<Tiles, typename Tiles::IntegerProduct, kTwoTilesOfRows, kTwoPanels>;
  alignas(64) int32_t products[kMostSums];
  clear_sums(block);
  const char* x = static_cast<const char*>(block.input);
  const char* w = block.weights;
  for (int64_t group = 0; group < block.depth / kGroup; ++group) {
    Sums::zero();
    for (int64_t k = 0; k < kGroup; k += kTileDepth, x += kTileDepth, w += kTileBytes) {
      prefetch_tiles<Tiles, kTwoPanels>(w, block.panel_stride);
      Sums::add(x, block.row_stride, w, w + block.panel_stride);
    }
    Sums::store(products);
    for (int64_t row = 0; row < block.rows; ++row) {
      const int64_t at = row * block.scale_stride + group;
      for (int64_t first = 0; first < Sums::kWidth; first += 16) {
        const int64_t i = row * Sums::kWidth + first;
        Tiles::add_integers(products + i, block.input_offsets[at], block.input_scales[at], block.sums + i);
      }
    }
  }
}

// As tiles of bytes, what lies in `depth` inputs' lines of 4 bits; depth <= 64.
template <typename Tiles>
void unpack_tile(const char* nibbles, int64_t depth, char* tile) {
  for (int64_t k = 0; k < depth; k += 8, nibbles += kTileRowBytes, tile += 2 * kTileRowBytes)
    Tiles::unpack(nibbles, tile, tile + kTileRowBytes);
}

// `Tiles` has, beside what bf16 takes, IntegerProduct::multiply, which is TDPBSUD; unpack(from, low, high):
// the low and the high bits of 64 bytes; and NibbleScales(header), the scales and minima of 16 outputs, with
// add(products, scale, sum, sums): sums + products * (the output's scale * scale), then + minimum * sum, two
// fused multiply-adds.
template <typename Tiles, bool kTwoTilesOfRows, bool kTwoPanels>
void multiply_nibble_tiles_of(const ProductBlock& block) {
  using Sums = TileSums<Tiles, typename Tiles::IntegerProduct, kTwoTilesOfRows, kTwoPanels>;
  constexpr int kPanels = kTwoPanels ? 2 : 1;
  alignas(64) int32_t products[kMostSums];
  // A group of 32 leaves the second half of a tile zero: what a load of input has from beyond the group
  // counts nothing.
  alignas(64) char tiles[2][kTileBytes] = {};
  clear_sums(block);
  const int64_t group_bytes = kNibbleHeader + block.group * 8;
  const char* x = static_cast<const char*>(block.input);
  const char* w = block.weights;
  for (int64_t group = 0; group < block.depth / block.group; ++group, x += block.group, w += group_bytes) {
    Sums::zero();
    for (int64_t k = 0; k < block.group; k += kTileDepth) {
      const int64_t depth = block.group < kTileDepth ? block.group : kTileDepth;
      for (int p = 0; p < kPanels; ++p)
        unpack_tile<Tiles>(w + p * block.panel_stride + kNibbleHeader + k * 8, depth, tiles[p]);
      Sums::add(x + k, block.row_stride, tiles[0], tiles[1]);
    }
    Sums::store(products);
    for (int p = 0; p < kPanels; ++p) {
      const typename Tiles::NibbleScales scales(w + p * block.panel_stride);
      for (int64_t row = 0; row < block.rows; ++row) {
        const int64_t i = row * Sums::kWidth + p * 16;
        scales.add(products + i, block.input_scales[row * block.scale_stride + group * block.group / kGroup],
                   block.input_sums[row * block.sum_stride + group], block.sums + i);
      }
    }
  }
}

template <typename Tiles>
void multiply_integer_tiles(const ProductBlock& block) {
  by_tiles(block, [&]<bool kTwoTilesOfRows, bool kTwoPanels> {
    multiply_integer_tiles_of<Tiles, kTwoTilesOfRows, kTwoPanels>(block);
  });
}

template <typename Tiles>
void multiply_nibble_tiles(const ProductBlock& block) {
  by_tiles(block, [&]<bool kTwoTilesOfRows, bool kTwoPanels> {
    multiply_nibble_tiles_of<Tiles, kTwoTilesOfRows, kTwoPanels>(block);
  });
}

}  // namespace
}  // namespace shoal::ops::cpu
