#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/sm90/partial.cuh"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/residual.h"

namespace shoal::ops::cuda {
namespace {

template <typename T>
auto kernel_of(const PartialPlan& plan) {
  return plan.row_groups == 1  ? partial_kernel<T, 1, 8>
         : plan.tile_rows == 8 ? partial_kernel<T, 2, 8>
                               : partial_kernel<T, 2, 16>;
}

}  // namespace

PartialPlan partial_plan(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  if (rows <= kSkinnyRows || rows > kMostPartialRows || matrix.paired || !has_even_segments(matrix))
    return {};
  PartialPlan plan{.row_groups = rows <= 64 ? 1 : 2, .tile_rows = rows <= 128 ? 8 : 16};
  const int outputs = plan.tile_rows * kTileOutputs;
  if (matrix.outputs % outputs != 0) return {};
  const int64_t segment = matrix.segment_tiles() * 64, barriers = 8 * (1 + matrix.segment_tiles() / 2);
  plan.weights_offset = static_cast<int>(segment * 64 * plan.row_groups);
  plan.barriers_offset = static_cast<int>(plan.weights_offset + segment * outputs);
  plan.bytes = static_cast<int>(plan.barriers_offset + barriers);
  return plan.bytes <= machine.shared_bytes ? plan : PartialPlan{};
}

bool partial_product(Context& ctx, const Product& product, TensorView sums) {
  if (!has_wgmma(ctx)) return false;
  const MatrixShape& matrix = product.shape;
  const PartialPlan plan = partial_plan(matrix, product.rows, machine_of(ctx));
  if (plan.row_groups == 0) return false;
  const int block_rows = 64 * plan.row_groups;
  const PartialArguments arguments{
      .x = rows_map(product.x, product.rows, matrix.depth, product.x_stride, block_rows, /*box_tiles=*/2),
      .weight = static_cast<const uint4*>(product.weight),
      .sums = sums.as<float>(),
      .plan = plan,
      .rows = product.rows,
      .outputs = static_cast<int>(matrix.outputs),
      .row_tiles = static_cast<int>(matrix.row_tiles()),
      .segment_tiles = static_cast<int>(matrix.segment_tiles()),
      .output_blocks = static_cast<int>(matrix.outputs / (plan.tile_rows * kTileOutputs))};
  const int64_t blocks = blocks_for(product.rows, block_rows) * arguments.output_blocks * kSegments;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks)),
                  .threads = dim3(static_cast<unsigned>(128 * plan.row_groups)),
                  .shared_bytes = static_cast<size_t>(plan.bytes)};
  launch(
      ctx, "segments of a product", grid,
      with_operand_type(product.format.operand, [&](auto type) { return kernel_of<decltype(type)>(plan); }),
      arguments);
  return true;
}

}  // namespace shoal::ops::cuda
