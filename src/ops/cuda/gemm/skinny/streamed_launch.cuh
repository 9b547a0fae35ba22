// Starts streamed_kernel for a cut (streamed_cut.h).
#pragma once

#include "ops/cuda/gemm/skinny/streamed.cuh"
#include "ops/cuda/gemm/skinny/streamed_product.h"

namespace shoal::ops::cuda {

template <typename T, TileWeights kWeights, int kTileRows>
auto streamed_kernel_of(const SkinnyArguments& a) {
  using enum StreamedInput;
  if (a.norm_weight)
    return a.rows == 1 ? streamed_kernel<T, kWeights, one_normed, kTileRows, false>
                       : streamed_kernel<T, kWeights, normed, kTileRows, false>;
  if (a.staged) return streamed_kernel<T, kWeights, staged, kTileRows, false>;
  return a.rows > 8 ? streamed_kernel<T, kWeights, direct, kTileRows, true>
                    : streamed_kernel<T, kWeights, direct, kTileRows, false>;
}

template <typename T, TileWeights kWeights>
void launch_streamed(Context& ctx, const SkinnyArguments& a, int blocks) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks)),
                  .threads = dim3(kStreamedThreads),
                  .shared_bytes = static_cast<size_t>(StreamedShared(a).bytes)};
  launch(ctx, "streamed product", grid,
         a.block_rows == 1 ? streamed_kernel_of<T, kWeights, 1>(a) : streamed_kernel_of<T, kWeights, 2>(a),
         a);
}

}  // namespace shoal::ops::cuda
