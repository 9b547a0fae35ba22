#include <algorithm>
#include <limits>

#include "ops/cuda/gemm/skinny/skinny_cut.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kBlockRows[] = {6, 4, 3, 2, 1};
// Of weights in a block: two kernels of a chain are to fit on a multiprocessor, with their inputs.
constexpr int kMostWeightBytes = 96 << 10;

// Of one normed row, tiles that a warp multiplies, unless it has one row of tiles only: many warps are ready
// sooner, and the row is normed by each block in no time (S2-Pro, an H200, three rows of tiles of qkv to a
// block, or six with 4 bits, and two: int8 31.8 -> 31.2, fp8 37.5 -> 37.3, 4 bits 37.9 -> 36.0 us a
// layer; S1-mini's four and two 11.9 -> 12.5).
constexpr int kMostWarpTiles = 20;
// And pairs of a block (S1-mini, 3 / 2 / 1: 14.3 / 14.1 / 14.5 us a layer, int8 11.9 / 11.7 / 13.0, fp8 12.7
// / 12.3 / 14.5; S2-Pro with 4 bits, 2 / 1: 36.0 / 39.1).
constexpr int kOneRowPairs = 2;

int64_t blocks_for(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

int sums_bytes(const SkinnyArguments& a) { return (a.rows > 8 ? 16 : 8) * kTileOutputs * 4; }

// Whether each segment of a row of tiles has records of its own, in which there is room for its sums.
bool holds_sums(const SkinnyArguments& a) {
  const int last = (1 << a.form.shift) - 1, rest = a.row_tiles - (a.segments - 1) * a.segment_tiles;
  return (a.segment_tiles & last) == 0 && a.form.records(0, rest) * a.form.record_bytes() >= sums_bytes(a);
}

// For block_rows rows of tiles: stages and their sizes.
void choose_places(SkinnyArguments& a, const Machine& machine) {
  const bool fits = a.block_rows * a.segments * place_bytes_of(a, a.segment_tiles) <= kMostWeightBytes;
  a.stage_tiles = fits ? a.segment_tiles : a.paired ? 4 : 12;
  a.stages = fits ? 1 : a.paired ? 3 : 2;
  a.place_bytes = place_bytes_of(a, a.stage_tiles);
  a.joined = fits && machine.wgmma && holds_sums(a);
  a.row_stride = a.joined ? static_cast<int>(a.form.row_bytes(a.row_tiles)) : a.place_bytes;
  a.segment_stride = a.joined ? a.form.start_of(a.segment_tiles) : a.segment_bytes();
}

// For a staged row. Two rows of tiles (of one S2-Pro's layer takes 33.8 instead of 32.9 us with int8, an
// H200), if all multiprocessors still have a block, and room for the next kernel's. Of 4 bits one (of
// two 39.1 instead of 37.9 us). False: no room.
bool choose_staged(SkinnyArguments& a, const Machine& machine) {
  a.staged = true;
  if (!a.paired && a.form.bits == 8 && blocks_for(a.tile_rows, 2) >= machine.multiprocessors) {
    a.block_rows = 2;
    choose_places(a, machine);
    if (a.stages == 1 && SkinnyShared(a).bytes <= machine.shared_bytes / 2) return true;
  }
  a.block_rows = a.paired ? 2 : 1;
  choose_places(a, machine);
  return SkinnyShared(a).bytes <= machine.shared_bytes;
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
  return std::max(a.form.records(whole ? 0 : last, tiles) * a.form.record_bytes(), sums_bytes(a));
}

void choose_cut(SkinnyArguments& a, const Machine& machine) {
  const int step = a.paired ? 2 : 1, row_bytes = a.segments * place_bytes_of(a, a.segment_tiles);
  const int64_t budget = std::min<int64_t>(kMostWeightBytes, machine.shared_bytes / 2);
  const auto fits = [&](int rows) { return rows <= step || rows * row_bytes <= budget; };
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int rows : kBlockRows) {
    if (rows % step != 0 || !fits(rows)) continue;
    if (a.one_normed() && rows > step && rows * a.segment_tiles > kMostWarpTiles) continue;
    const int64_t load = blocks_for(blocks_for(a.tile_rows, rows), machine.multiprocessors) * rows;
    if (load < least) least = load, a.block_rows = rows;
  }
  if (a.one_normed() && a.paired && fits(kOneRowPairs * step)) a.block_rows = kOneRowPairs * step;
  choose_places(a, machine);
}

bool choose_half_cut(SkinnyArguments& a, const Machine& machine) {
  const bool wanted = a.form.bits < 16 && a.rows == 1 && a.segment_tiles > tiles_ahead(1);
  a.staged = wanted && choose_staged(a, machine);
  if (!a.staged) choose_cut(a, machine);
  return SkinnyShared(a).bytes <= machine.shared_bytes;
}

bool skinny_fits(const MatrixShape& shape, int64_t rows, const SkinnyForm& form, const Machine& machine) {
  if (rows > (form.normed ? kNormRows : kSkinnyRows) || shape.taps != 1) return false;
  constexpr float kSomething = 0;
  SkinnyArguments arguments = skinny_arguments(shape, rows, form.weights);
  if (form.normed) arguments.norm_weight = &kSomething;
  choose_cut(arguments, machine);
  return SkinnyShared(arguments).bytes <= machine.shared_bytes;
}

}  // namespace shoal::ops::cuda
