// Starts the kernel of each shape.
#pragma once

#include <utility>

#include "ops/cuda/gemm/sm90/wide.cuh"

namespace shoal::ops::cuda {

template <typename T>
void launch_wide(Context& ctx, const WideChoice& choice, int64_t blocks, const WideArguments& arguments) {
  const WideShape& shape = kWideShapes[static_cast<size_t>(choice.shape)];
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks)),
                  .threads = dim3(static_cast<unsigned>(shape.threads())),
                  .shared_bytes = static_cast<size_t>(arguments.plan.bytes),
                  .cluster = static_cast<unsigned>(choice.cluster)};
  [&]<int... kShapes>(std::integer_sequence<int, kShapes...>) {
    (void)((choice.shape == kShapes &&
            (launch(ctx, "wide product", grid, wide_kernel<T, kShapes>, arguments), true)) ||
           ...);
  }(std::make_integer_sequence<int, static_cast<int>(kWideShapes.size())>());
}

}  // namespace shoal::ops::cuda
