// Chooses the kernel for a matrix: all give the same bits, so only time matters.
#pragma once

#include <array>
#include <cstdint>
#include <cuda_runtime.h>

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

// A block of threads computes `rows` x `outputs` sums. Its warps are row_warps x output_warps over these,
// times depth_groups: with 1 every warp runs through all segments and keeps their total in registers;
// otherwise every group of warps has its own segment and the block adds their sums in order (for few rows:
// more warps work on a short sum).
struct TileShape {
  int rows, outputs;
  int row_warps, output_warps, depth_groups;
  int stage_tiles, stages;  // of the pipeline through shared memory: tiles of 32 inputs per stage
};

constexpr std::array<TileShape, 10> kTileShapes = {{
    {128, 128, 2, 4, 1, 2, 4},
    {128, 96, 2, 3, 1, 2, 4},
    {128, 64, 4, 2, 1, 2, 4},
    {64, 64, 2, 2, 1, 2, 4},
    {32, 64, 2, 2, 1, 2, 4},
    {16, 64, 1, 4, 1, 2, 5},
    {64, 48, 1, 1, 8, 1, 3},
    {64, 32, 1, 1, 8, 1, 4},
    {32, 32, 1, 1, 8, 1, 3},
    {32, 16, 1, 1, 8, 1, 4},
}};

// Dynamic shared memory of a block: its stages, or the sums that take their place.
constexpr int kSumPadding = 8;  // padding floats after every row of sums (tile.cuh)
constexpr int64_t shared_bytes_of(const TileShape& shape) {
  const int64_t stages =
      int64_t{64} * (shape.rows + shape.outputs) * shape.stage_tiles * shape.stages * shape.depth_groups;
  const int64_t sums = int64_t{4} * shape.depth_groups * shape.rows * (shape.outputs + kSumPadding);
  return stages > sums ? stages : sums;
}

struct TileChoice {
  int shape = 0;       // of kTileShapes
  bool split = false;  // every segment has its own blocks (depth_groups of 1 only)
  friend bool operator==(const TileChoice&, const TileChoice&) = default;
};

// When split, the result has at most this many tiles: each needs a counter (StreamState::counters).
constexpr int64_t kMostSplitTiles = 1024;

// Whether the kernel can do it at all.
bool can_do(const TileChoice& choice, const MatrixShape& matrix, int64_t rows, const Machine& machine);
// Expected time, from the bytes, the operations and the length of the chain of its blocks. rows > 0.
double expected_us(const TileChoice& choice, const MatrixShape& matrix, int64_t rows, const Machine& machine);
// The one that is expected to be the fastest.
TileChoice choose_tile(const MatrixShape& matrix, int64_t rows, const Machine& machine);

}  // namespace shoal::ops::cuda
