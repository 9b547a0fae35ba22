// Chooses how skinny_kernel's work is cut into blocks.
#pragma once

#include <algorithm>
#include <limits>

#include "ops/cuda/gemm/skinny/skinny.cuh"

namespace shoal::ops::cuda {

constexpr int kBlockRows[] = {6, 4, 3, 2, 1};
// Of weights in a block: two kernels of a chain are to fit on a multiprocessor, with their inputs.
constexpr int kMostWeightBytes = 96 << 10;

// As many rows of tiles to a block as keep the most loaded multiprocessor's part smallest; of these the most,
// so that x is read and normed by few blocks. A segment streams through places for 24 tiles where not even
// one row fits; a place holds a multiple of what the kernel asks for ahead.
inline void choose_cut(SkinnyArguments& a, int multiprocessors, int most_shared_bytes) {
  const int step = a.paired ? 2 : 1, row_bytes = a.segments * a.segment_tiles * kTileBytes;
  const int budget = std::min(kMostWeightBytes, most_shared_bytes / 2);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int rows : kBlockRows) {
    if (rows % step != 0) continue;
    if (rows > step && rows * row_bytes > budget) continue;
    const int64_t load = blocks_for(blocks_for(a.tile_rows, rows), multiprocessors) * rows;
    if (load < least) least = load, a.block_rows = rows;
  }
  const bool fits = a.block_rows * row_bytes <= kMostWeightBytes;
  a.stage_tiles = fits ? a.segment_tiles : a.paired ? 4 : 12;
  a.stages = fits ? 1 : a.paired ? 3 : 2;
}

template <typename T, SkinnyInput kInput, int kTileRows>
void launch_skinny_rows(Context& ctx, const SkinnyArguments& a) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(a.tile_rows, a.block_rows))),
                  .threads = dim3(kSkinnyThreads),
                  .shared_bytes = static_cast<size_t>(SkinnyShared(a).bytes)};
  auto kernel = skinny_kernel<T, kInput, kTileRows, false>;
  if constexpr (kInput != SkinnyInput::normed)
    if (a.rows > 8) kernel = skinny_kernel<T, kInput, kTileRows, true>;
  launch(ctx, "skinny product", grid, kernel, a);
}

template <typename T, SkinnyInput kInput>
void launch_skinny_input(Context& ctx, const SkinnyArguments& a) {
  switch (a.block_rows) {
    case 1:
      return launch_skinny_rows<T, kInput, 1>(ctx, a);
    case 2:
      return launch_skinny_rows<T, kInput, 2>(ctx, a);
    case 3:
      return launch_skinny_rows<T, kInput, 3>(ctx, a);
    case 4:
      return launch_skinny_rows<T, kInput, 4>(ctx, a);
    default:
      return launch_skinny_rows<T, kInput, 6>(ctx, a);
  }
}

template <typename T>
bool launch_skinny(Context& ctx, SkinnyArguments a, bool float_input) {
  const StreamState& stream = state_of(ctx);
  choose_cut(a, stream.multiprocessors(), stream.most_shared_bytes());
  if (SkinnyShared(a).bytes > stream.most_shared_bytes()) return false;
  if (a.norm_weight)
    launch_skinny_input<T, SkinnyInput::normed>(ctx, a);
  else if (float_input)
    launch_skinny_input<T, SkinnyInput::f32>(ctx, a);
  else
    launch_skinny_input<T, SkinnyInput::half>(ctx, a);
  return true;
}

}  // namespace shoal::ops::cuda
