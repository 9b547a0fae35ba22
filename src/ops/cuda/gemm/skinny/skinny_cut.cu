#include <algorithm>
#include <limits>

#include "ops/cuda/gemm/skinny/skinny_cut.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kBlockRows[] = {6, 4, 3, 2, 1};
// Of weights in a block: two kernels of a chain are to fit on a multiprocessor, with their inputs.
constexpr int kMostWeightBytes = 96 << 10;

int64_t blocks_for(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

// For block_rows rows of tiles: stages and their sizes.
void choose_places(SkinnyArguments& a) {
  const bool fits = a.block_rows * a.segments * place_bytes_of(a, a.segment_tiles) <= kMostWeightBytes;
  a.stage_tiles = fits ? a.segment_tiles : a.paired ? 4 : 12;
  a.stages = fits ? 1 : a.paired ? 3 : 2;
  a.place_bytes = place_bytes_of(a, a.stage_tiles);
}

}  // namespace

SkinnyArguments skinny_arguments(const MatrixShape& shape, int64_t rows, const TileForm& form) {
  return {.rows = static_cast<int>(rows),
          .depth = static_cast<int>((shape.depth + 7) / 8 * 8),
          .outputs = static_cast<int>(shape.outputs),
          .tile_rows = static_cast<int>(shape.tile_rows()),
          .row_tiles = static_cast<int>(shape.row_tiles()),
          .segment_tiles = static_cast<int>(shape.segment_tiles()),
          .segments = static_cast<int>(blocks_for(shape.row_tiles(), shape.segment_tiles())),
          .paired = shape.paired,
          .form = form};
}

int place_bytes_of(const SkinnyArguments& a, int tiles) {
  const int last = (1 << a.form.shift) - 1;
  const bool whole = (a.segment_tiles & last) == 0 && (tiles == a.segment_tiles || (tiles & last) == 0);
  const int sums = (a.rows > 8 ? 16 : 8) * kTileOutputs * 4;
  return std::max(a.form.records(whole ? 0 : last, tiles) * a.form.record_bytes(), sums);
}

void choose_cut(SkinnyArguments& a, const Machine& machine) {
  const int step = a.paired ? 2 : 1, row_bytes = a.segments * place_bytes_of(a, a.segment_tiles);
  const int64_t budget = std::min<int64_t>(kMostWeightBytes, machine.shared_bytes / 2);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int rows : kBlockRows) {
    if (rows % step != 0) continue;
    if (rows > step && rows * row_bytes > budget) continue;
    const int64_t load = blocks_for(blocks_for(a.tile_rows, rows), machine.multiprocessors) * rows;
    if (load < least) least = load, a.block_rows = rows;
  }
  choose_places(a);
}

bool choose_half_cut(SkinnyArguments& a, const Machine& machine) {
  a.staged = a.form.bits < 16 && a.rows == 1 && a.segment_tiles > tiles_ahead(1);
  if (a.staged) {
    a.block_rows = a.paired ? 2 : 1;
    choose_places(a);
    a.staged = SkinnyShared(a).bytes <= machine.shared_bytes;
  }
  if (!a.staged) choose_cut(a, machine);
  return SkinnyShared(a).bytes <= machine.shared_bytes;
}

bool skinny_fits(const MatrixShape& shape, int64_t rows, const SkinnyForm& form, const Machine& machine) {
  if (rows > (form.normed ? kNormRows : kSkinnyRows) || shape.taps != 1) return false;
  constexpr float kSomething = 0;
  SkinnyArguments arguments = skinny_arguments(shape, rows, form.weights);
  if (form.normed) arguments.norm_weight = &kSomething;
  arguments.epilogue.accumulate = form.accumulate;
  choose_cut(arguments, machine);
  return SkinnyShared(arguments).bytes <= machine.shared_bytes;
}

}  // namespace shoal::ops::cuda
