// Starts skinny_kernel for a cut (skinny_cut.h).
#pragma once

#include "ops/cuda/gemm/skinny/skinny.cuh"
#include "ops/cuda/gemm/skinny/skinny_cut.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"

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

template <typename T, TileWeights kWeights>
void launch_half(Context& ctx, const SkinnyArguments& a) {
  if constexpr (kWeights != TileWeights::half) {
    if (a.staged)
      return a.block_rows == 1 ? launch_skinny_rows<T, kWeights, SkinnyInput::staged, 1>(ctx, a)
                               : launch_skinny_rows<T, kWeights, SkinnyInput::staged, 2>(ctx, a);
  }
  launch_skinny_input<T, kWeights, SkinnyInput::half>(ctx, a);
}

template <typename T, TileWeights kWeights>
bool launch_skinny(Context& ctx, SkinnyArguments a, bool float_input) {
  const Machine machine = machine_of(ctx);
  if (!a.norm_weight && !float_input) {
    if (!choose_half_cut(a, machine)) return false;
    launch_half<T, kWeights>(ctx, a);
    return true;
  }
  choose_cut(a, machine);
  if (SkinnyShared(a).bytes > machine.shared_bytes) return false;
  if (a.norm_weight)
    launch_skinny_input<T, kWeights, SkinnyInput::normed>(ctx, a);
  else
    launch_skinny_input<T, kWeights, SkinnyInput::f32>(ctx, a);
  return true;
}

}  // namespace shoal::ops::cuda
