#include <algorithm>

#include "ops/cuda/resident.cuh"
#include "ops/cuda/resident_split.cuh"
#include "ops/cuda/tile_product.h"
#include "ops/cuda/wide_product.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kBlockRows[] = {6, 4, 2};  // the fewest that suit are taken: most blocks at work
constexpr int kResidentRows = 64;

// Whether the sums of a segment find room where its rows were: rows of kOutputs and the padding.
bool has_room_for_sums(const MatrixShape& matrix, int tile_rows) {
  return 4 * (tile_rows * kTileOutputs + kWideSumPadding) <= matrix.segment_tiles() * 64;
}

template <typename T>
void launch_resident(Context& ctx, const ResidentArguments& arguments) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(arguments.tile.output_blocks)),
                  .threads = dim3(kResidentThreads),
                  .shared_bytes = static_cast<size_t>(arguments.plan.bytes)};
  const int rows = arguments.plan.tile_rows;
  launch(ctx, "resident product", grid,
         rows == 2   ? resident_kernel<T, 2>
         : rows == 4 ? resident_kernel<T, 4>
                     : resident_kernel<T, 6>,
         arguments);
}

template <typename T>
void launch_split(Context& ctx, const ResidentArguments& arguments) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(arguments.tile.output_blocks * kSegments)),
                  .threads = dim3(kSplitThreads),
                  .shared_bytes = static_cast<size_t>(arguments.plan.bytes),
                  .cluster = kSegments};
  launch(ctx, "split product", grid, resident_split_kernel<T>, arguments);
}

// Whether all segments are there, and equally long, without a tile that is not full.
bool has_even_segments(const MatrixShape& matrix) {
  return matrix.taps == 1 && matrix.depth == kSegments * matrix.segment_tiles() * kTileInputs;
}

}  // namespace

ResidentPlan resident_plan(const MatrixShape& matrix, int64_t rows, const TileMachine& machine) {
  ResidentPlan plan{.groups = static_cast<int>(operand_groups(rows))};
  const int64_t tiles = matrix.row_tiles();
  if (rows <= kSkinnyRows || rows > kResidentRows || !has_even_segments(matrix)) return plan;
  for (const int of_block : kBlockRows) {
    const int64_t blocks = (matrix.tile_rows() + of_block - 1) / of_block, barriers = 8 * (1 + kSegments);
    const int64_t bytes = tiles * kTileBytes * (of_block + plan.groups) + barriers;
    if (blocks > machine.multiprocessors || bytes > machine.shared_bytes) continue;
    if (!has_room_for_sums(matrix, of_block)) continue;
    plan.tile_rows = of_block;
    plan.segment_bytes = static_cast<int>(matrix.segment_tiles() * kTileBytes * plan.groups);
    plan.weights_offset = kSegments * plan.segment_bytes;
    plan.barriers_offset = static_cast<int>(bytes - barriers);
    plan.bytes = static_cast<int>(bytes);
  }
  return plan;
}

ResidentPlan split_plan(const MatrixShape& matrix, int64_t rows, const TileMachine& machine) {
  ResidentPlan plan{.groups = static_cast<int>(operand_groups(rows))};
  if (rows <= kSkinnyRows || rows > kResidentRows || matrix.paired || !has_even_segments(matrix)) return plan;
  const int64_t blocks = (matrix.outputs + kSplitOutputs - 1) / kSplitOutputs * kSegments;
  const int64_t tiles = matrix.segment_tiles(), sums = int64_t{4} * kSplitPitch * plan.groups * 8;
  // The rows that a full operand reaches over, where there are fewer, are those of the weights.
  plan.segment_bytes = static_cast<int>(tiles * kTileBytes * plan.groups);
  plan.weights_offset = plan.segment_bytes;
  plan.barriers_offset =
      static_cast<int>(std::max(plan.weights_offset + tiles * kTileBytes * kSplitTileRows, sums));
  plan.bytes = plan.barriers_offset + 8;
  const int64_t room = (machine.shared_bytes + 1024) / 2 - 1024;  // of two blocks on a multiprocessor
  if (plan.bytes <= room && blocks <= 2 * machine.multiprocessors) plan.tile_rows = kSplitTileRows;
  return plan;
}

bool split_product(Context& ctx, const Product& product) {
  if (!has_wide_kernels(ctx)) return false;
  const ResidentPlan plan = split_plan(product.shape, product.rows, tile_machine(ctx));
  if (plan.tile_rows == 0) return false;
  const ResidentArguments arguments{tile_arguments(product, kResidentRows, kSplitOutputs, nullptr), plan};
  if (product.dtype == DType::bf16)
    launch_split<__nv_bfloat16>(ctx, arguments);
  else
    launch_split<__half>(ctx, arguments);
  return true;
}

bool resident_product(Context& ctx, const Product& product, TensorView x, const RmsNorm& norm) {
  if (!has_wide_kernels(ctx)) return false;
  const ResidentPlan plan = resident_plan(product.shape, product.rows, tile_machine(ctx));
  if (plan.tile_rows == 0) return false;
  const Workspace::Scope scope(*ctx.workspace);
  Product ready = product;
  ready.x = tiled_operand(ctx, x, product.dtype, norm).data();
  ready.x_stride = product.shape.depth;
  const ResidentArguments arguments{
      tile_arguments(ready, kResidentRows, plan.tile_rows * kTileOutputs, nullptr), plan};
  if (product.dtype == DType::bf16)
    launch_resident<__nv_bfloat16>(ctx, arguments);
  else
    launch_resident<__half>(ctx, arguments);
  return true;
}

}  // namespace shoal::ops::cuda
