#include <algorithm>
#include <limits>
#include <utility>

#include "ops/cuda/gemm/skinny/skinny_cut.h"
#include "ops/cuda/gemm/skinny/streamed_cut.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kStageTiles[] = {10, 8, 5, 4, 2};  // the most that leave three stages
constexpr int kWantedStages = 3, kFewestStages = 2;
// Of a block, for its ring and its rows: more of 2 to 8 rows, which most often are in shared memory, too
// (S2-Pro on an H200, frames/s with two thirds / four fifths: batch 1 240 / 231, batch 8 1,593 / 1,637; 8
// bits, batch 1 336 / 324, batch 8 2,069 / 2,144).
int64_t room_of(const SkinnyArguments& a, const Machine& machine) {
  const bool several = 1 < a.rows && a.rows <= kNormRows;
  return several ? machine.shared_bytes * 4 / 5 : machine.shared_bytes * 2 / 3;
}
// Of weights that a block asks for before its inputs are there (S2-Pro on an H200, all / 100 KB / 64 KB: 16
// bits, batch 1 - / 233 / 235, batch 8 - / 1,495 / 1,505 frames/s; 8 bits, batch 8 - / 1,935 / 1,987).
constexpr int64_t kFirstBytes = 64 << 10;
// Of one row (int8, 64 / 96 KB: 32.1 / 30.9 us a layer, 128 KB
// 0.3 more; of four and eight rows 37.2, 39.3 / 39.3, 41.7; fp8, one row 36.2 / 36.5).
constexpr int64_t kFirstBytesOfOne = 96 << 10;
// What the blocks of skinny.cuh on a multiprocessor hold at once: of two, and of all that fit where they need
// no norm or little memory.
constexpr int64_t kHeldByTwo = 96 << 10, kHeldByAll = 200 << 10;
// Of narrow weights less, so that S2-Pro's w2 streams (one row of 8 bits, an H200: 12.2 instead of 14.6 us),
// and of several rows its qkv, whose blocks would all norm them twice (a layer of four 45.4 -> 44.9 us, of
// one 35.9 -> 37.2).
constexpr int64_t kHeldNarrow = 150 << 10, kHeldNarrowRows = 100 << 10;
// Of rows in shared memory that need no norm: the ring is to stay deep.
constexpr int64_t kMostStaged = 40 << 10, kMostStagedNarrow = 80 << 10;

// Whether pieces of so many tiles suit the segments.
bool is_stage(const SkinnyArguments& a, int tiles) {
  if (tiles % (1 << a.form.shift) != 0) return false;  // groups would be read twice
  // Rows that come from global memory are asked for so many tiles ahead.
  if (!a.rows_in_shared()) return tiles % (a.block_rows == 1 ? 8 : 4) == 0;
  if (a.form.bits != 8 || a.segment_tiles < tiles) return tiles <= 8;
  // A copy of 8-bit tiles is short: no shorter one at the end than half of the others.
  const int rest = a.segment_tiles % tiles;
  return rest == 0 || (tiles <= 8 && 2 * rest >= tiles);
}

}  // namespace

bool choose_stages(SkinnyArguments& a, int64_t room) {
  for (const int tiles : kStageTiles) {
    if (!is_stage(a, tiles)) continue;
    a.stage_tiles = tiles;
    a.row_stride = a.place_bytes = place_bytes_of(a, tiles);
    a.stages = static_cast<int>(
        std::clamp<int64_t>(room / (int64_t{a.segments} * a.stage_bytes()), 0, kMostStreamedStages));
    if (a.stages >= kWantedStages) break;
  }
  const int64_t stage = int64_t{a.segments} * a.stage_bytes();
  // Rows that are not in shared memory are asked for bit by bit, whatever stands before them.
  a.first_stages =
      a.rows_in_shared()
          ? static_cast<int>(std::max<int64_t>(1, (a.rows == 1 ? kFirstBytesOfOne : kFirstBytes) / stage))
          : a.stages;
  return a.stages >= kFewestStages;
}

bool choose_stream(SkinnyArguments& a, const Machine& machine, int blocks) {
  const int step = a.paired ? 2 : 1;
  // Two rows of tiles of 8 bits are one operand: a unit of one takes as long (S2-Pro's w2, 8 rows, an
  // H200: 16.8 -> 13.8 us). Among as many units, those that leave less to the busiest block.
  using Load = std::pair<int64_t, int64_t>;
  Load least{std::numeric_limits<int64_t>::max(), 0};
  for (const int rows : {2, 1}) {
    if (rows % step != 0) continue;
    const int64_t units = parts_of(parts_of(a.tile_rows, rows), blocks);
    const Load load{a.form.bits == 8 ? units : units * rows, units * rows};
    if (load < least) least = load, a.block_rows = rows;
  }
  a.most_units = static_cast<int>(parts_of(parts_of(a.tile_rows, a.block_rows), blocks));
  a.staged =
      !a.norm_weight && a.rows <= kNormRows &&
      int64_t{a.rows} * a.row_tiles * kTileInputs * 2 <= (a.form.bits < 16 ? kMostStagedNarrow : kMostStaged);
  a.stages = 0;
  return choose_stages(a, room_of(a, machine) - StreamedShared(a).bytes);
}

bool is_streamed(const MatrixShape& shape, int64_t rows, const TileForm& form, const Machine& machine) {
  // (A row of 4-bit weights: 45.4 us a layer of S2-Pro's sizes by skinny.cuh, 49.9 by streams, on an H200.)
  if (!machine.wgmma || (form.bits == 4 && rows == 1)) return false;
  const int64_t narrow = rows == 1 ? kHeldNarrow : kHeldNarrowRows;
  const int64_t held = rows > kNormRows ? kHeldByAll : form.bits < 16 ? narrow : kHeldByTwo;
  return form.bytes(shape) > machine.multiprocessors * held;
}

}  // namespace shoal::ops::cuda
