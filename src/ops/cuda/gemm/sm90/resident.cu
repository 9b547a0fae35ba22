#include <algorithm>

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/sm90/resident.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kBlockRows[] = {6, 4, 2};  // the smallest suitable size is taken: most blocks at work
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

}  // namespace

ResidentPlan resident_plan(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  // Groups of eight by twos: a warp has 16 rows of sums.
  ResidentPlan plan{.groups = static_cast<int>((rows + 15) / 16 * 2)};
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

bool resident_product(Context& ctx, const Product& product) {
  if (!has_wgmma(ctx)) return false;
  const MatrixShape& matrix = product.shape;
  const ResidentPlan plan = resident_plan(matrix, product.rows, machine_of(ctx));
  if (plan.tile_rows == 0) return false;
  const ResidentArguments arguments{
      tile_arguments(product, kResidentRows, plan.tile_rows * kTileOutputs, nullptr), plan,
      rows_map(product.x, product.rows, matrix.depth, product.x_stride, plan.groups * 8, /*box_tiles=*/2)};
  with_operand_type(product.format.operand,
                    [&](auto type) { launch_resident<decltype(type)>(ctx, arguments); });
  return true;
}

}  // namespace shoal::ops::cuda
