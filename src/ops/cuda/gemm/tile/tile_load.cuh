// How the operands of a block of tile.cuh get into shared memory.
#pragma once

#include <cstdint>

#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/gemm/tile/tile_choice.h"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

template <int kShape>
struct TileSizes {
  static constexpr TileShape kThis = kTileShapes[kShape];
  static constexpr int kRows = kThis.rows, kOutputs = kThis.outputs, kDepthGroups = kThis.depth_groups;
  static constexpr int kStageTiles = kThis.stage_tiles, kStages = kThis.stages;
  static constexpr int kRowTiles = kRows / kThis.row_warps / 16;  // of a warp: 16 rows, 8 outputs
  static constexpr int kOutputTiles = kOutputs / kThis.output_warps / kTileOutputs;
  static constexpr int kGroupThreads = 32 * kThis.row_warps * kThis.output_warps;
  static constexpr int kThreads = kGroupThreads * kDepthGroups;
  // In units of 16 bytes.
  static constexpr int kRowChunks = kRows * 4, kWeightChunks = kOutputs * 4;
  static constexpr int kStageChunks = kStageTiles * (kRowChunks + kWeightChunks);
  static constexpr int kRowCopies = (kRowChunks + kGroupThreads - 1) / kGroupThreads;  // of a thread per tile
  static constexpr int kWeightCopies = kWeightChunks / kGroupThreads;
  // Rows of the groups' sums have 8 padding floats, so that rows g = 0..3 of a half-warp's 8-byte stores fall
  // into different banks.
  static constexpr int kSumPitch = kOutputs + kSumPadding;
  static constexpr int64_t kSharedBytes = shared_bytes_of(kThis);
  static_assert(kRows % (16 * kThis.row_warps) == 0 && kOutputs % (16 * kThis.output_warps) == 0);
  static_assert(kWeightChunks % kGroupThreads == 0 && kGroupThreads % 32 == 0);
  static_assert(kDepthGroups == 1 || kGroupThreads == 32);
};

// Brings the tiles of a group of warps into its stages, one after the other.
template <int kShape>
class TileLoader {
 public:
  using Sizes = TileSizes<kShape>;

  // Tiles [begin, end) of the rows of tiles of the block.
  __device__ TileLoader(const TileArguments& arguments, char* stages, int thread, int output_block, int begin,
                        int end)
      : arguments_(arguments), stages_(shared_address(stages)), thread_(thread), end_(end) {
    tap_ = begin / arguments.tap_tiles;
    chunk_ = (begin - tap_ * arguments.tap_tiles) * 4 + thread % 4;
    const int first = output_block * (Sizes::kOutputs / kTileOutputs);
    // A thread copies the same 16 bytes of every (kGroupThreads / 32)-th tile. Tiles after the last row of
    // tiles are not copied: their results are not stored.
    weights_ =
        arguments.weight + static_cast<int64_t>(first + thread / 32) * arguments.row_tiles * 32 + thread % 32;
    weight_rows_ = arguments.tile_rows - first - thread / 32;
  }

  // The rows of x for the block's rows; rows after the last repeat the last one. Reads first_rows.
  __device__ void find_rows(int64_t first_row) {
#pragma unroll
    for (int i = 0; i < Sizes::kRowCopies; ++i) {
      const int64_t row = min(first_row + (i * Sizes::kGroupThreads + thread_) / 4, arguments_.rows - 1);
      const uint32_t from = arguments_.first_rows ? static_cast<uint32_t>(arguments_.first_rows[row])
                                                  : static_cast<uint32_t>(row);
      rows_[i] = from * arguments_.row_stride;
    }
  }

  // Starts the copies of the tiles of a stage, of which `first` is the first one.
  __device__ void copy_weights(int stage, int first) {
    constexpr int kWarps = Sizes::kGroupThreads / 32;
    const uint32_t to =
        stages_ + (stage * Sizes::kStageChunks + Sizes::kStageTiles * Sizes::kRowChunks + thread_) * 16;
#pragma unroll
    for (int tile = 0; tile < Sizes::kStageTiles; ++tile) {
      if (first + tile >= end_) return;
      const uint4* const from = weights_ + static_cast<int64_t>(first + tile) * 32;
#pragma unroll
      for (int i = 0; i < Sizes::kWeightCopies; ++i)
        if (i * kWarps < weight_rows_)
          copy_or_zero(to + (tile * Sizes::kWeightChunks + i * Sizes::kGroupThreads) * 16,
                       from + static_cast<int64_t>(i * kWarps) * arguments_.row_tiles * 32, true);
    }
  }

  // The same for the rows; stages must be asked for in order.
  __device__ void copy_rows(int stage, int first) {
    const int row = thread_ / 4 % kTileOutputs;  // within eight
    const int chunk = thread_ / 4 * 4 + swizzled_chunk(row, thread_ % 4);
    const uint32_t to = stages_ + (stage * Sizes::kStageChunks + chunk) * 16;
#pragma unroll
    for (int tile = 0; tile < Sizes::kStageTiles; ++tile) {
      if (first + tile >= end_) return;
      const bool present = chunk_ < arguments_.depth_chunks;
      const uint4* from =
          arguments_.x + (present ? static_cast<int64_t>(tap_) * arguments_.tap_stride + chunk_ : 0);
#pragma unroll
      for (int i = 0; i < Sizes::kRowCopies; ++i)
        if (Sizes::kRowChunks % Sizes::kGroupThreads == 0 ||
            i * Sizes::kGroupThreads + thread_ < Sizes::kRowChunks)
          copy_or_zero(to + (tile * Sizes::kRowChunks + i * Sizes::kGroupThreads) * 16, from + rows_[i],
                       present);
      chunk_ += 4;
      if (chunk_ >= arguments_.tap_tiles * 4) {
        chunk_ -= arguments_.tap_tiles * 4;
        ++tap_;
      }
    }
  }

 private:
  const TileArguments& arguments_;
  uint32_t stages_;
  int thread_, end_;
  const uint4* weights_;
  int weight_rows_;
  int tap_, chunk_;  // of the thread's next 16 bytes of rows
  uint32_t rows_[Sizes::kRowCopies];
};

}  // namespace shoal::ops::cuda
