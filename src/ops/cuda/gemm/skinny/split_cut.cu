#include <algorithm>

#include "ops/cuda/gemm/skinny/split_cut.h"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kSmall = 40 << 10;  // bytes of weights of a block that are better asked for at once
constexpr int64_t kMostShared = 200 << 10;

}  // namespace

bool choose_split(SkinnyArguments& a, const Machine& machine, int clusters) {
  const int64_t most_rows = parts_of(a.tile_rows, clusters);
  a.block_rows = parts_of(most_rows, kSplitGroups) == kSplitTileRows ? kSplitTileRows : 2;
  a.most_units = static_cast<int>(parts_of(most_rows, a.block_rows));
  a.staged = true;
  a.stages = 0;
  const int64_t most = std::min(machine.shared_bytes, kMostShared);
  return choose_stages(a, most - SplitShared(a).bytes) &&
         a.most_units * a.block_rows * SplitShared::kTileResults / 4 <= kSplitBlocks * kSkinnyThreads;
}

bool is_split(const MatrixShape& shape, int64_t rows, const TileForm& form, const Machine& machine) {
  if (!machine.wgmma || rows > kNormRows || shape.paired || shape.taps != 1) return false;
  if (segments_of(shape) != kSegments) return false;
  // One row: what streams, of 8 bits (a layer of S2-Pro's sizes, an H200: 39.8 -> 38.2 us; 16 bits 53 -> 59).
  if (rows == 1 && (form.bits != 8 || !is_streamed(shape, rows, form, machine))) return false;
  const int64_t clusters = machine.multiprocessors / kSplitBlocks;
  return form.bytes(shape) > machine.multiprocessors * kSmall &&
         parts_of(shape.tile_rows(), clusters) <
             kSplitBlocks * parts_of(shape.tile_rows(), machine.multiprocessors);
}

}  // namespace shoal::ops::cuda
