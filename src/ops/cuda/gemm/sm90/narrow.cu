#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/sm90/narrow_arguments.cuh"
#include "ops/cuda/gemm/sm90/wide_choice.h"
#include "ops/residual.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kMostStages = 24, kFewestStages = 4;

// y is the sums themselves, in f32.
bool is_bare(const ProductEpilogue& e) {
  return !e.bias && !e.scale && !e.accumulate && e.activation == Activation::none && e.y_dtype == DType::f32;
}

// A stage's part of a row of tiles: two tiles, of whole records. 0: a record has more.
int row_bytes(const TileForm& form) { return form.shift > 1 ? 0 : form.records(0, 2) * form.record_bytes(); }

// Of x in a block that has room for so many: what one warpgroup multiplies, or several times the most.
int rows_of(int64_t rows) {
  return rows <= 16 ? 16 : rows <= 32 ? 32 : static_cast<int>(blocks_for(rows, 64) * 64);
}

bool multiply(Context& ctx, const Product& product, float* sums) {
  const MatrixShape& matrix = product.shape;
  const Machine machine = machine_of(ctx);
  const TileForm form = form_of(product.format);
  const NarrowPlan plan = narrow_plan(matrix, form, product.rows, sums != nullptr, machine);
  if (!machine.wgmma || plan.warps == 0) return false;
  const NarrowArguments arguments{
      .x = rows_map(product.x, product.rows, matrix.depth, product.x_stride, plan.rows, /*box_tiles=*/2),
      .weights = record_map(product.weight, matrix, form, 2 * plan.warps, plan.row_bytes),
      .plan = plan,
      .form = form,
      .scales = product.scales,
      .sums = sums,
      .epilogue = product.epilogue,
      .rows = product.rows,
      .outputs = static_cast<int>(matrix.outputs),
      .tile_rows = static_cast<int>(matrix.tile_rows()),
      .segment_stages = static_cast<int>(matrix.segment_tiles() / 2),
      .output_blocks = static_cast<int>(blocks_for(matrix.tile_rows(), 2 * plan.warps)),
      .paired = matrix.paired,
      .bare = sums || is_bare(product.epilogue),
      .once = is_large(matrix, machine)};
  const int64_t blocks = int64_t{arguments.output_blocks} * (sums ? kSegments : 1);
  with_weights(product.format, [&]<typename T, TileWeights kWeights> {
    if constexpr (kWeights != TileWeights::half) launch_narrow<T, kWeights>(ctx, arguments, blocks);
  });
  return true;
}

}  // namespace

NarrowPlan narrow_plan(const MatrixShape& matrix, const TileForm& form, int64_t rows, bool by_segment,
                       const Machine& machine) {
  constexpr int64_t kAlignment = 128;  // of what a copy writes
  const int bytes = row_bytes(form);
  if (form.bits == 16 || bytes == 0 || rows > kMostNarrowRows || !has_even_segments(matrix)) return {};
  if (by_segment && matrix.paired) return {};
  const int64_t pairs = blocks_for(matrix.tile_rows(), 2), parts = by_segment ? kSegments : 1;
  const int64_t blocks = std::max<int64_t>(machine.multiprocessors / parts, 1);
  NarrowPlan plan{.warps = static_cast<int>(std::min<int64_t>(blocks_for(pairs, blocks), kNarrowWarps)),
                  .rows = rows_of(rows),
                  .row_bytes = bytes};
  if (4 * plan.warpgroups() > kNarrowWarps) return {};
  plan.stage_bytes = static_cast<int>(blocks_for(2 * plan.warps * bytes, kAlignment) * kAlignment);
  // Of small matrices half, so that the next product finds room beside, and asks for its weights early (a
  // layer of S1-mini, 64 rows: 28.0 -> 26.2 us on an H200).
  const bool whole = rows > 64 || is_large(matrix, machine);
  const int64_t room = machine.shared_bytes / (whole ? 1 : 2);
  const int64_t stage = plan.rows * 128 + plan.stage_bytes + 16;  // with its barriers
  plan.stages = static_cast<int>(std::min<int64_t>(room / stage, kMostStages));
  if (plan.stages < kFewestStages) return {};
  plan.weights_offset = plan.stages * plan.rows * 128;
  plan.barriers_offset = plan.weights_offset + plan.stages * plan.stage_bytes;
  plan.bytes = plan.barriers_offset + plan.stages * 16;
  return plan;
}

bool narrow_product(Context& ctx, const Product& product) { return multiply(ctx, product, nullptr); }

bool narrow_segments(Context& ctx, const Product& product, TensorView sums) {
  return multiply(ctx, product, sums.as<float>());
}

}  // namespace shoal::ops::cuda
