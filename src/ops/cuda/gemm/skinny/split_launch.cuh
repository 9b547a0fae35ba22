// Starts split_kernel for a cut (split_cut.h).
#pragma once

#include "ops/cuda/gemm/skinny/split.cuh"
#include "ops/cuda/gemm/skinny/split_product.h"

namespace shoal::ops::cuda {

template <typename T, TileWeights kWeights>
void launch_split(Context& ctx, const SkinnyArguments& a, int clusters) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(clusters * kSplitBlocks)),
                  .threads = dim3(kSkinnyThreads),
                  .shared_bytes = static_cast<size_t>(SplitShared(a).bytes),
                  .cluster = kSplitBlocks};
  launch(ctx, "split product", grid,
         a.block_rows == 2 ? split_kernel<T, kWeights, 2> : split_kernel<T, kWeights, kSplitTileRows>, a);
}

}  // namespace shoal::ops::cuda
