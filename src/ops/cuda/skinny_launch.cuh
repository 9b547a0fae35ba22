// Chooses how many rows of tiles a block of skinny_kernel owns.
#pragma once

#include "ops/cuda/skinny.cuh"

namespace shoal::ops::cuda {

template <typename T, int kTileRows, bool kFloatInput>
bool launch_skinny_rows(Context& ctx, const SkinnyArguments& arguments) {
  const SkinnyShared shared(arguments.rows, arguments.row_tiles, kTileRows, arguments.norm_weight != nullptr);
  if (shared.bytes > state_of(ctx).most_shared_bytes()) return false;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(arguments.tile_rows, kTileRows))),
                  .threads = dim3(kSkinnyThreads),
                  .shared_bytes = static_cast<size_t>(shared.bytes)};
  launch(ctx, "skinny product", grid, skinny_kernel<T, kTileRows, kFloatInput>, arguments);
  return true;
}

// So many that there is one block per multiprocessor, where that can be: all weights are on their way at once
// then.
template <typename T, bool kFloatInput>
bool launch_skinny(Context& ctx, const SkinnyArguments& arguments) {
  const int64_t wanted = blocks_for(arguments.tile_rows, state_of(ctx).multiprocessors());
  if (wanted <= 1 && !arguments.paired) return launch_skinny_rows<T, 1, kFloatInput>(ctx, arguments);
  if (wanted <= 2) return launch_skinny_rows<T, 2, kFloatInput>(ctx, arguments);
  if (wanted <= 4) return launch_skinny_rows<T, 4, kFloatInput>(ctx, arguments);
  return launch_skinny_rows<T, 6, kFloatInput>(ctx, arguments);
}

}  // namespace shoal::ops::cuda
