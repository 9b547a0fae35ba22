// Starts swapped_kernel for a plan (swapped_product.h).
#pragma once

#include "ops/cuda/gemm/sm90/swapped.cuh"

namespace shoal::ops::cuda {

template <typename T, TileWeights kWeights>
void launch_swapped(Context& ctx, const SwappedArguments& a, int64_t blocks) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks)),
                  .threads = dim3(static_cast<unsigned>(128 * (a.plan.warpgroups() + 1))),
                  .shared_bytes = static_cast<size_t>(a.plan.bytes)};
  launch(ctx, "swapped product", grid,
         a.plan.group_rows() == 16    ? swapped_kernel<T, kWeights, 16>
         : a.plan.group_rows() == 32  ? swapped_kernel<T, kWeights, 32>
         : a.plan.group_rows() == 64  ? swapped_kernel<T, kWeights, 64>
         : a.plan.group_rows() == 128 ? swapped_kernel<T, kWeights, 128>
                                      : swapped_kernel<T, kWeights, 160>,
         a);
}

}  // namespace shoal::ops::cuda
