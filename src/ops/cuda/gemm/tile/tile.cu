#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/gemm/tile/tile_product.h"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {

static_assert(kMostSplitTiles <= StreamState::kCounters);

void tile_product_by(Context& ctx, const Product& product, const TileChoice& choice,
                     const float* snake_alpha) {
  const Workspace::Scope scope(*ctx.workspace);
  const TileShape& shape = kTileShapes[static_cast<size_t>(choice.shape)];
  TileArguments arguments = tile_arguments(product, shape.rows, shape.outputs, snake_alpha);
  if (choice.split) {
    const int64_t tiles = int64_t{arguments.row_blocks} * arguments.output_blocks;
    const TensorView partial =
        ctx.workspace->alloc(DType::f32, {tiles * arguments.segments, int64_t{shape.rows} * shape.outputs});
    arguments.partial = partial.as<float>();
    arguments.counters = state_of(ctx).counters();
  }
  with_operand_type(product.format.operand, [&](auto type) {
    launch_tile<decltype(type)>(ctx, choice.shape, choice.split, arguments);
  });
}

}  // namespace shoal::ops::cuda
