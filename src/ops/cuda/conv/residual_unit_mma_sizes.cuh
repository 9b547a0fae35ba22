// How the blocks of residual_unit_mma.cuh divide work and shared memory.
//   rows: [look_back + 64][channels] of 16 bits, rows kRowBytes apart
#pragma once

#include "ops/cuda/conv/residual_unit_arguments.cuh"

namespace shoal::ops::cuda {

// What differs by the number of channels.
struct MmaUnitDivision {
  int warps;   // of a block; each has all rows of a piece and its share of the outputs
  int parts;   // in which it makes them, so that its sums fit into registers
  int blocks;  // that a multiprocessor has registers for: one multiplies while another brings rows
};

// 96, 192 and 384: a codec's decoder. 64, 128 and 256: its encoder.
template <int kChannels>
constexpr MmaUnitDivision mma_unit_division() {
  if constexpr (kChannels == 64) return {4, 1, 4};
  if constexpr (kChannels == 96) return {4, 1, 3};
  if constexpr (kChannels == 128) return {4, 1, 2};
  if constexpr (kChannels == 192) return {4, 2, 2};
  if constexpr (kChannels == 256) return {8, 1, 1};
  if constexpr (kChannels == 384) return {8, 2, 1};
  return {};
}

template <int kChannels>
struct MmaUnitSizes {
  static constexpr MmaUnitDivision kDivision = mma_unit_division<kChannels>();
  static_assert(kDivision.warps > 0, "there is no kernel for so many channels");
  static constexpr int kAllChannels = kChannels, kRows = 64;
  static constexpr int kWarps = kDivision.warps, kParts = kDivision.parts, kBlocks = kDivision.blocks;
  static constexpr int kThreads = 32 * kWarps;
  // Of a warp and a part: 16 rows each, 8 outputs each.
  static constexpr int kRowTiles = kRows / 16, kOutputTiles = kChannels / kParts / kWarps / kTileOutputs;
  static_assert(kOutputTiles * kTileOutputs * kWarps * kParts == kChannels);
  static constexpr int kTapTiles = kChannels / kTileInputs;
  static constexpr int kSegmentTiles = (kTapTiles + kSegments - 1) / kSegments;  // of the narrow convolution
  static_assert(kTapTiles % kSegmentTiles == 0);

  // 16 bytes more than a multiple of 128 or 64: eight rows of an operand lie in different banks.
  static constexpr int kRowBytes = 2 * kChannels + 16;
  __device__ static int column(int quad) { return quad * 8; }
  static constexpr int kBytes = (kRows + (kUnitTaps - 1) * kUnitMostDilation) * kRowBytes;
  static_assert(kBytes <= 96 << 10);

  // Threads that bring rows: each has four channels of every kTogether-th row, of up to 16 at a time.
  static constexpr int kQuads = kChannels / 4;
  static constexpr int kTogether = kChannels == 96 ? 4 : kThreads / kQuads;
  static constexpr int kRowThreads = kTogether * kQuads;
  static constexpr int kRowsOfThread = kRows / kTogether < 16 ? kRows / kTogether : 16;
};

}  // namespace shoal::ops::cuda
