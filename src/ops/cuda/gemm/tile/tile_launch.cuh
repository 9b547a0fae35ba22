// Starts the kernel of each shape.
#pragma once

#include <utility>

#include "ops/cuda/gemm/tile/tile.cuh"

namespace shoal::ops::cuda {

template <typename T, int kShape>
void launch_shape(Context& ctx, bool split, const TileArguments& arguments) {
  using Sizes = TileSizes<kShape>;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(arguments.row_blocks) *
                                     static_cast<unsigned>(arguments.output_blocks),
                                 split ? static_cast<unsigned>(arguments.segments) : 1),
                  .threads = dim3(Sizes::kThreads),
                  .shared_bytes = Sizes::kSharedBytes};
  launch(ctx, "tile product", grid, tile_kernel<T, kShape>, arguments);
}

template <typename T>
void launch_tile(Context& ctx, int shape, bool split, const TileArguments& arguments) {
  [&]<int... kShapes>(std::integer_sequence<int, kShapes...>) {
    (void)((shape == kShapes && (launch_shape<T, kShapes>(ctx, split, arguments), true)) || ...);
  }(std::make_integer_sequence<int, static_cast<int>(kTileShapes.size())>());
}

}  // namespace shoal::ops::cuda
