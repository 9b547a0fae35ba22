// Starts streamed_kernel for a cut (streamed_cut.h).
#pragma once

#include "ops/cuda/gemm/skinny/streamed.cuh"
#include "ops/cuda/gemm/skinny/streamed_product.h"

namespace shoal::ops::cuda {

template <typename T, int kBits, int kTileRows>
auto streamed_kernel_of(const SkinnyArguments& a) {
  using enum StreamedInput;
  if (a.norm_weight) return streamed_kernel<T, kBits, normed, kTileRows, false>;
  if (a.staged) return streamed_kernel<T, kBits, staged, kTileRows, false>;
  return a.rows > 8 ? streamed_kernel<T, kBits, direct, kTileRows, true>
                    : streamed_kernel<T, kBits, direct, kTileRows, false>;
}

template <typename T, int kBits>
void launch_streamed(Context& ctx, const SkinnyArguments& a, int blocks) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks)),
                  .threads = dim3(kStreamedThreads),
                  .shared_bytes = static_cast<size_t>(StreamedShared(a).bytes)};
  launch(ctx, "streamed product", grid,
         a.block_rows == 1 ? streamed_kernel_of<T, kBits, 1>(a) : streamed_kernel_of<T, kBits, 2>(a), a);
}

}  // namespace shoal::ops::cuda
