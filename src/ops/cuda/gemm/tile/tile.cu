#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/gemm/tile/tile_product.h"

namespace shoal::ops::cuda {

static_assert(kMostSplitTiles <= StreamState::kCounters);

void tile_product_by(Context& ctx, const Product& product, const TileChoice& choice,
                     const float* snake_alpha) {
  CHECK(product.format.operand == DType::bf16 || product.format.operand == DType::f16, "tile product of ",
        name_of(product.format.operand));
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
  if (product.format.operand == DType::bf16)
    launch_tile<__nv_bfloat16>(ctx, choice.shape, choice.split, arguments);
  else
    launch_tile<__half>(ctx, choice.shape, choice.split, arguments);
}

}  // namespace shoal::ops::cuda
