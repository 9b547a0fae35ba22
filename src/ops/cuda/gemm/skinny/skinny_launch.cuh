// Starts skinny_kernel for a cut (skinny_cut.h).
#pragma once

#include "ops/cuda/gemm/skinny/skinny.cuh"
#include "ops/cuda/gemm/skinny/skinny_cut.h"

namespace shoal::ops::cuda {

template <typename T, TileWeights kWeights, SkinnyInput kInput, int kTileRows>
void launch_skinny_rows(Context& ctx, const SkinnyArguments& a) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(a.tile_rows, a.block_rows))),
                  .threads = dim3(kSkinnyThreads),
                  .shared_bytes = static_cast<size_t>(SkinnyShared(a).bytes)};
  auto kernel = skinny_kernel<T, kWeights, kInput, kTileRows, false>;
  if constexpr (kInput == SkinnyInput::half || kInput == SkinnyInput::f32)
    if (a.rows > 8) kernel = skinny_kernel<T, kWeights, kInput, kTileRows, true>;
  launch(ctx, "skinny product", grid, kernel, a);
}

template <typename T, TileWeights kWeights, SkinnyInput kInput>
void launch_skinny_input(Context& ctx, const SkinnyArguments& a) {
  switch (a.block_rows) {
    case 1:
      return launch_skinny_rows<T, kWeights, kInput, 1>(ctx, a);
    case 2:
      return launch_skinny_rows<T, kWeights, kInput, 2>(ctx, a);
    case 3:
      return launch_skinny_rows<T, kWeights, kInput, 3>(ctx, a);
    case 4:
      return launch_skinny_rows<T, kWeights, kInput, 4>(ctx, a);
    default:
      return launch_skinny_rows<T, kWeights, kInput, 6>(ctx, a);
  }
}

// (Wide weights are not staged: large matrices of theirs stream.)
template <typename T, TileWeights kWeights>
void launch_staged(Context& ctx, const SkinnyArguments& a) {
  if constexpr (kWeights != TileWeights::half) launch_skinny_input<T, kWeights, SkinnyInput::staged>(ctx, a);
}

template <typename T, TileWeights kWeights>
bool launch_skinny_weights(Context& ctx, SkinnyArguments a, bool float_input) {
  const StreamState& stream = state_of(ctx);
  // A single row whose segments are longer than what is asked for ahead would be waited for again and again.
  constexpr bool kNarrow = kWeights != TileWeights::half;
  a.staged = kNarrow && a.rows == 1 && !a.norm_weight && !float_input && a.segment_tiles > tiles_ahead(1);
  choose_cut(a, machine_of(ctx));
  if (SkinnyShared(a).bytes > stream.most_shared_bytes()) return false;
  if (a.norm_weight)
    launch_skinny_input<T, kWeights, SkinnyInput::normed>(ctx, a);
  else if (float_input)
    launch_skinny_input<T, kWeights, SkinnyInput::f32>(ctx, a);
  else if (a.staged)
    launch_staged<T, kWeights>(ctx, a);
  else
    launch_skinny_input<T, kWeights, SkinnyInput::half>(ctx, a);
  return true;
}

template <typename T>
bool launch_skinny(Context& ctx, SkinnyArguments a, bool float_input) {
  return launch_skinny_weights<T, TileWeights::half>(ctx, a, float_input);
}

}  // namespace shoal::ops::cuda
