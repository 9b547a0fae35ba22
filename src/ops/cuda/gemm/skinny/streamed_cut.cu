#include <algorithm>
#include <limits>

#include "ops/cuda/gemm/skinny/skinny_cut.h"
#include "ops/cuda/gemm/skinny/streamed_cut.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kStageTiles[] = {8, 5, 4, 2};  // the most that leave three stages
constexpr int kWantedStages = 3, kFewestStages = 2;
// What the blocks of skinny.cuh on a multiprocessor hold at once: of two, and of all that fit where they need
// no norm or little memory.
constexpr int64_t kHeldByTwo = 96 << 10, kHeldByAll = 200 << 10;

int64_t parts_of(int64_t items, int64_t per_part) { return (items + per_part - 1) / per_part; }

}  // namespace

bool choose_stream(SkinnyArguments& a, const Machine& machine) {
  const int step = a.paired ? 2 : 1;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int rows : {2, 1}) {
    if (rows % step != 0) continue;
    const int64_t load = parts_of(parts_of(a.tile_rows, rows), machine.multiprocessors) * rows;
    if (load < least) least = load, a.block_rows = rows;
  }
  a.stages = 0;
  const int64_t room = machine.shared_bytes * 2 / 3 - StreamedShared(a).bytes;
  for (const int tiles : kStageTiles) {
    // Inputs that come from global memory are asked for so many tiles ahead.
    if (!a.norm_weight && tiles % (a.block_rows == 1 ? 8 : 4) != 0) continue;
    if (tiles % (1 << a.form.shift) != 0) continue;  // groups would be read twice
    a.stage_tiles = tiles;
    a.place_bytes = place_bytes_of(a, tiles);
    a.stages = static_cast<int>(
        std::clamp<int64_t>(room / (int64_t{a.segments} * a.stage_bytes()), 0, kMostStreamedStages));
    if (a.stages >= kWantedStages) break;
  }
  return a.stages >= kFewestStages;
}

bool is_streamed(const MatrixShape& shape, int64_t rows, const TileForm& form, const Machine& machine) {
  const bool narrow = form.bits < 16;
  if (!machine.wgmma || (narrow && rows == 1)) return false;
  const int64_t held = narrow || rows > kNormRows ? kHeldByAll : kHeldByTwo;
  return form.bytes(shape) > machine.multiprocessors * held;
}

}  // namespace shoal::ops::cuda
