// Starts narrow_kernel for a plan (narrow_product.h).
#pragma once

#include "ops/cuda/gemm/sm90/narrow.cuh"

namespace shoal::ops::cuda {

template <typename T, TileWeights kWeights>
void launch_narrow(Context& ctx, const NarrowArguments& a, int64_t blocks) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks)),
                  .threads = dim3(static_cast<unsigned>(128 * (a.plan.warpgroups() + 1))),
                  .shared_bytes = static_cast<size_t>(a.plan.bytes)};
  launch(ctx, "narrow product", grid,
         a.plan.rows == 16   ? narrow_kernel<T, kWeights, 16>
         : a.plan.rows == 32 ? narrow_kernel<T, kWeights, 32>
                             : narrow_kernel<T, kWeights, 64>,
         a);
}

}  // namespace shoal::ops::cuda
