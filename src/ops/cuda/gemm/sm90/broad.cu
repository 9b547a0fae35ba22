#include <algorithm>

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/sm90/broad.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

// The smallest suitable size is taken, but not smaller: a product is limited by how much all blocks together
// read from the second-level cache (about 6,500 bytes a clock on an H200), so that 64 blocks that read half
// as much are no slower than twice as many.
constexpr int kBlockOutputs[] = {64, 96};
constexpr int64_t kFewestRows = 65, kFewestWeightStages = 4;

template <typename T>
auto kernel_of(const BroadPlan& plan) {
  return plan.outputs == 64 ? broad_kernel<T, 64> : broad_kernel<T, 96>;
}

// store_broad's conditions; and no scale, which may make a sum -0: others add 0 to that.
bool writes_lines(const TileArguments& tile, int block_outputs) {
  const ProductEpilogue& e = tile.epilogue;
  const int64_t size = tile.paired ? 2 : 4, results = block_outputs / (tile.paired ? 2 : 1);
  return size_of(e.y_dtype) == size && !e.accumulate && !e.scale && tile.outputs % results == 0 &&
         reinterpret_cast<uintptr_t>(e.y) % 16 == 0 && e.y_stride * size % 16 == 0;
}

}  // namespace

BroadPlan broad_plan(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  if (rows < kFewestRows || matrix.taps != 1 || matrix.depth != kBroadDepth) return {};
  for (const int outputs : kBlockOutputs) {
    const int64_t blocks =
        blocks_for(rows, kBroadRows) * blocks_for(matrix.tile_rows() * kTileOutputs, outputs);
    constexpr int64_t kRingBytes = kBroadRowStages * kBroadRowBytes;
    constexpr int64_t kBarrierBytes = 16 * (kBroadRowStages + kBroadStages);
    const int64_t stage = outputs * 128, room = machine.shared_bytes - kRingBytes - kBarrierBytes;
    const int64_t stages = std::min<int64_t>(room / stage, kBroadStages);
    if (blocks > machine.multiprocessors || stages < kFewestWeightStages) continue;
    return {.outputs = outputs,
            .weight_stages = static_cast<int>(stages),
            .weights_offset = static_cast<int>(kRingBytes),
            .barriers_offset = static_cast<int>(kRingBytes + stages * stage),
            .bytes = static_cast<int>(kRingBytes + stages * stage + kBarrierBytes)};
  }
  return {};
}

bool broad_product(Context& ctx, const Product& product) {
  if (!has_wgmma(ctx)) return false;
  const BroadPlan plan = broad_plan(product.shape, product.rows, machine_of(ctx));
  if (plan.outputs == 0) return false;
  const TileArguments tile = tile_arguments(product, kBroadRows, plan.outputs, nullptr);
  if (!tile.plain) return false;
  const BroadArguments arguments{
      .tile = tile,
      .plan = plan,
      .lines = writes_lines(tile, plan.outputs),
      .rows = rows_map(product.x, product.rows, kBroadDepth, product.x_stride, kBroadRows, /*box_tiles=*/2),
      .weights = weight_map(product.weight, product.shape, plan.outputs / kTileOutputs, /*tiles=*/2)};
  const int64_t blocks = int64_t{arguments.tile.row_blocks} * arguments.tile.output_blocks;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks)),
                  .threads = dim3(kBroadThreads),
                  .shared_bytes = static_cast<size_t>(plan.bytes)};
  launch(
      ctx, "broad product", grid,
      with_operand_type(product.format.operand, [&](auto type) { return kernel_of<decltype(type)>(plan); }),
      arguments);
  return true;
}

}  // namespace shoal::ops::cuda
