#include <algorithm>

#include "ops/cuda/gemm/operands/remembered.h"
#include "ops/cuda/gemm/tile/tile_choice.h"

namespace shoal::ops::cuda {
namespace {

// An H200, in microseconds. Rates are those that such kernels reach, not the nominal ones.
constexpr double kStartUs = 1.5;            // of a block: until its first tile is there
constexpr double kTileUs = 0.06;            // of one tile in a chain: its two multiplications and its loads
constexpr double kGroupsUs = 0.7;           // to add up the groups of a block
constexpr double kSplitUs = 2.5;            // to add up the blocks of a tile
constexpr double kBytesPerUs = 5.5e6;       // L2 to all multiprocessors
constexpr double kBytesPerUsOfOne = 8e4;    // L2 to one of them
constexpr double kOperationsPerUs = 3.0e6;  // of one multiprocessor, warps of 64 x 32 sums

int64_t blocks_of(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

// Warps with few sums load more per product.
double share_of_peak(const TileShape& shape) {
  const double rows = static_cast<double>(shape.rows) / shape.row_warps;
  const double outputs = static_cast<double>(shape.outputs) / shape.output_warps;
  return std::min(1.0, rows * outputs / (rows + outputs) / 21.0);
}

TileChoice fastest_of_all(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  TileChoice best;
  double best_us = 1e300;
  for (int shape = 0; shape < static_cast<int>(kTileShapes.size()); ++shape) {
    for (const bool split : {false, true}) {
      const TileChoice choice{shape, split};
      if (!can_do(choice, matrix, rows, machine)) continue;
      const double us = expected_us(choice, matrix, rows, machine);
      if (us < best_us) best = choice, best_us = us;
    }
  }
  return best;
}

}  // namespace

bool can_do(const TileChoice& choice, const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  const TileShape& shape = kTileShapes[static_cast<size_t>(choice.shape)];
  if (shared_bytes_of(shape) > machine.shared_bytes) return false;
  const int64_t segments = segments_of(matrix);
  if (shape.depth_groups > 1) return !choice.split && segments <= shape.depth_groups;
  const int64_t tiles =
      blocks_of(rows, shape.rows) * blocks_of(matrix.tile_rows() * kTileOutputs, shape.outputs);
  return !choice.split || (segments > 1 && tiles <= kMostSplitTiles);
}

double expected_us(const TileChoice& choice, const MatrixShape& matrix, int64_t rows,
                   const Machine& machine) {
  const TileShape& shape = kTileShapes[static_cast<size_t>(choice.shape)];
  const int64_t segments = segments_of(matrix);
  const double tiles = static_cast<double>(choice.split ? matrix.segment_tiles() : matrix.row_tiles());
  const double chain = static_cast<double>(choice.split || shape.depth_groups > 1 ? matrix.segment_tiles()
                                                                                  : matrix.row_tiles());
  const int64_t blocks = blocks_of(rows, shape.rows) *
                         blocks_of(matrix.tile_rows() * kTileOutputs, shape.outputs) *
                         (choice.split ? segments : 1);
  const double bytes = 64.0 * (shape.rows + shape.outputs) * tiles;
  const double operations = 2.0 * kTileInputs * shape.rows * shape.outputs * tiles;
  const int64_t of_one = blocks_of(blocks, machine.multiprocessors);
  const int64_t at_once = std::max<int64_t>(1, machine.shared_bytes / shared_bytes_of(shape));
  const double work =
      std::max({static_cast<double>(blocks) * bytes / kBytesPerUs,
                static_cast<double>(of_one) * bytes / kBytesPerUsOfOne,
                static_cast<double>(of_one) * operations / (kOperationsPerUs * share_of_peak(shape))});
  const double chains = static_cast<double>(blocks_of(of_one, at_once)) * (kStartUs + chain * kTileUs);
  double us = std::max(work + kStartUs, chains);
  if (shape.depth_groups > 1) us += kGroupsUs;
  if (choice.split) {
    const double sums = 4.0 * shape.rows * shape.outputs;
    us += kSplitUs + static_cast<double>(segments) * sums / kBytesPerUsOfOne +
          2 * static_cast<double>(blocks) * sums / kBytesPerUs;
  }
  return us;
}

TileChoice choose_tile(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  static thread_local Remembered<TileChoice> remembered;
  return remembered.of({matrix, rows, machine}, [&] { return fastest_of_all(matrix, rows, machine); });
}

}  // namespace shoal::ops::cuda
