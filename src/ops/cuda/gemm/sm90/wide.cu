#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/sm90/wide_arguments.cuh"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/residual.h"

namespace shoal::ops::cuda {
namespace {

void map_rows(const Product& product, const WideShape& shape, WideArguments& arguments) {
  const int64_t reach = (product.shape.taps - 1) * product.taps.dilation;
  arguments.tap_rows = static_cast<int>(product.taps.dilation);
  // Where a stage never ends inside of a pair of tiles.
  const bool pairs = arguments.plan.stage_tiles % 2 == 0 && product.shape.segment_tiles() % 2 == 0 &&
                     product.shape.tap_tiles() % 2 == 0;
  arguments.map_tiles = pairs ? 2 : 1;
  arguments.rows = rows_map(product.x, product.rows + reach, (product.shape.depth + 7) / 8 * 8,
                            product.x_stride, shape.rows(), arguments.map_tiles);
}

void launch_choice(Context& ctx, const Product& product, const WideChoice& choice, const float* snake_alpha,
                   float* sums) {
  const Machine machine = machine_of(ctx);
  WideArguments arguments = wide_arguments(product, choice, snake_alpha, machine);
  arguments.tile.partial = sums;
  const int64_t blocks = wide_blocks(arguments, choice, machine);
  with_operand_type(product.format.operand,
                    [&](auto type) { launch_wide<decltype(type)>(ctx, choice, blocks, arguments); });
}

}  // namespace

WideArguments wide_arguments(const Product& product, const WideChoice& choice, const float* snake_alpha,
                             const Machine& machine) {
  const WideShape& shape = kWideShapes[static_cast<size_t>(choice.shape)];
  WideArguments arguments{.tile = tile_arguments(product, shape.rows(), shape.outputs, snake_alpha),
                          .plan = wide_plan(choice, product.shape, machine),
                          .cluster = choice.cluster};
  CHECK(arguments.plan.stages > 0, "wide product without room");
  arguments.weights =
      weight_map(product.weight, product.shape, shape.outputs / kTileOutputs, arguments.plan.copy_tiles);
  if (!product.taps.first_rows) map_rows(product, shape, arguments);
  arguments.reads_once = arguments.tile.row_blocks == 1;
  return arguments;
}

int64_t wide_blocks(const WideArguments& arguments, const WideChoice& choice, const Machine& machine) {
  const WideShape& shape = kWideShapes[static_cast<size_t>(choice.shape)];
  const int64_t results = int64_t{arguments.tile.row_blocks} * arguments.tile.output_blocks *
                          (shape.by_segment ? arguments.tile.segments : 1);
  if (shape.split) return results * choice.cluster;
  return std::min<int64_t>(results, int64_t{machine.multiprocessors} * shape.blocks);
}

void wide_product_by(Context& ctx, const Product& product, const WideChoice& choice,
                     const float* snake_alpha) {
  launch_choice(ctx, product, choice, snake_alpha, nullptr);
}

void wide_segments(Context& ctx, Product product, TensorView sums) {
  product.epilogue = {.y = sums.data(), .y_stride = product.shape.outputs};
  const std::optional<int> shape = segments_shape(product.shape, product.rows, machine_of(ctx));
  CHECK(shape, "no kernel for the segments of ", product.rows, " rows");
  launch_choice(ctx, product, {*shape, 1}, nullptr, sums.as<float>());
}

}  // namespace shoal::ops::cuda
