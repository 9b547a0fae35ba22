#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/gemm/sm90/swapped_arguments.cuh"
#include "ops/cuda/gemm/sm90/wide_choice.h"
#include "ops/residual.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kMostStages = 24, kFewestStages = 4;

// y is the sums themselves, in f32.
bool is_bare(const ProductEpilogue& e) {
  return !e.bias && !e.scale && !e.accumulate && e.y_dtype == DType::f32;
}

// A stage's part of a row of tiles: two tiles, of whole records. 0: a record has more.
int tile_row_bytes(const TileForm& form) {
  return form.shift > 1 ? 0 : form.records(0, 2) * form.record_bytes();
}

// Of x in a block that has room for so many: what one warpgroup multiplies, or several times the most.
int rows_of(int64_t rows) {
  return rows <= 16 ? 16 : rows <= 32 ? 32 : static_cast<int>(blocks_for(rows, 64) * 64);
}

// sums: of segments, where by_segment; they have no memory in plans.
bool multiply(Context& ctx, const Product& product, bool by_segment, float* sums) {
  const MatrixShape& matrix = product.shape;
  const Machine machine = machine_of(ctx);
  const TileForm form = form_of(product.format);
  const SwappedPlan plan = swapped_plan(matrix, form, product.rows, by_segment, machine);
  if (plan.warps == 0 || product.epilogue.activation != Activation::none) return false;
  const auto row_blocks = static_cast<int>(blocks_for(product.rows, plan.rows)),
             output_blocks = static_cast<int>(blocks_for(matrix.tile_rows(), 2 * plan.warps));
  const SwappedArguments arguments{
      .x = rows_map(product.x, product.rows, matrix.depth, product.x_stride, plan.rows, /*box_tiles=*/2),
      .weights = record_map(product.weight, matrix, form, 2 * plan.warps, plan.tile_row_bytes),
      .plan = plan,
      .form = form,
      .scales = product.scales,
      .sums = sums,
      .epilogue = product.epilogue,
      .rows = product.rows,
      .outputs = static_cast<int>(matrix.outputs),
      .tile_rows = static_cast<int>(matrix.tile_rows()),
      .segment_stages = static_cast<int>(matrix.segment_tiles() / 2),
      .row_blocks = row_blocks,
      .output_blocks = output_blocks,
      .results = row_blocks * output_blocks * (by_segment ? kSegments : 1),
      .paired = matrix.paired,
      .in_pairs = size_of(product.epilogue.y_dtype) == 2 && is_plain(matrix, product.epilogue, nullptr),
      .bare = by_segment || is_bare(product.epilogue),
      .once = row_blocks == 1 && is_large(matrix, machine)};
  const int64_t blocks = has_many_sums(plan.group_rows())
                             ? std::min(arguments.results, machine.multiprocessors)
                             : arguments.results;
  with_weights(product.format, [&]<typename T, TileWeights kWeights> {
    if constexpr (kWeights != TileWeights::half) launch_swapped<T, kWeights>(ctx, arguments, blocks);
  });
  return true;
}

// Rows and warps of a block that does not have all rows.
struct RowBlock {
  int rows, warps;
};
constexpr RowBlock kRowBlocks[] = {{160, 8}, {128, 8}, {160, 4}, {128, 4}, {64, 4}};

// The block whose results take the least time. Cycles of a stage of 64 inputs: it keeps the tensor cores busy
// for two a row and warpgroup, and takes a warpgroup 280 at least; while one that is alone widens its first
// weights and adds up a segment (shared out among its tiles), they wait. (Fitted roughly to layers of S1-mini
// and S2-Pro of 65 to 2,048 rows on an H200.)
RowBlock best_row_block(const MatrixShape& matrix, int64_t rows, int64_t parts, const Machine& machine) {
  constexpr int64_t kMoreRows = 16;  // for what a result takes besides
  constexpr int64_t kShortest = 280, kWidening = 50, kSettling = 600;
  const auto cycles = [&](const RowBlock& block) {
    const int64_t warpgroups = block.warps / 4;
    const int64_t results =
        parts * blocks_for(matrix.tile_rows(), 2 * block.warps) * blocks_for(rows, block.rows);
    const int64_t alone = warpgroups == 1 ? kWidening + kSettling / matrix.segment_tiles() : 0;
    return blocks_for(results, machine.multiprocessors) *
           (std::max(2 * warpgroups * (block.rows + kMoreRows), kShortest) + alone);
  };
  return *std::ranges::min_element(kRowBlocks, {}, cycles);
}

}  // namespace

SwappedPlan swapped_plan(const MatrixShape& matrix, const TileForm& form, int64_t rows, bool by_segment,
                         const Machine& machine) {
  constexpr int64_t kAlignment = 128;  // of what a copy writes
  constexpr int64_t kReserved = 1024;  // of a multiprocessor's shared memory, by each of its blocks
  const int bytes = tile_row_bytes(form);
  if (!machine.wgmma || form.bits == 16 || bytes == 0) return {};
  if (!has_even_segments(matrix) || (by_segment && matrix.paired)) return {};
  const int64_t pairs = blocks_for(matrix.tile_rows(), 2), parts = by_segment ? kSegments : 1;
  const int64_t blocks = std::max<int64_t>(machine.multiprocessors / parts, 1);
  SwappedPlan plan{.warps = static_cast<int>(
                       std::min<int64_t>(blocks_for(pairs, blocks), most_swapped_warps(kSwappedRows))),
                   .rows = rows_of(rows),
                   .row_groups = static_cast<int>(blocks_for(rows, kSwappedRows)),
                   .tile_row_bytes = bytes};
  if (rows > kMostSwappedRows || 4 * plan.warpgroups() > most_swapped_warps(plan.group_rows())) {
    const RowBlock block = best_row_block(matrix, rows, parts, machine);
    plan.rows = block.rows, plan.warps = block.warps, plan.row_groups = 1;
  }
  plan.stage_bytes = static_cast<int>(blocks_for(2 * plan.warps * bytes, kAlignment) * kAlignment);
  // Small blocks of small matrices take half, so that one of the next product finds room beside, and asks for
  // its weights early (a layer of S1-mini, 64 rows: 28.0 -> 26.2 us on an H200).
  const bool alone = plan.warpgroups() > 1 || is_large(matrix, machine);
  const int64_t room = alone ? machine.shared_bytes : (machine.shared_bytes + kReserved) / 2 - kReserved;
  const int64_t stage = plan.rows * 128 + plan.stage_bytes + 16;  // with its barriers
  plan.stages = static_cast<int>(std::min<int64_t>(room / stage, kMostStages));
  if (plan.stages < kFewestStages) return {};
  plan.weights_offset = plan.stages * plan.rows * 128;
  plan.barriers_offset = plan.weights_offset + plan.stages * plan.stage_bytes;
  plan.bytes = plan.barriers_offset + plan.stages * 16;
  return plan;
}

bool swapped_product(Context& ctx, const Product& product) { return multiply(ctx, product, false, nullptr); }

bool swapped_segments(Context& ctx, const Product& product, TensorView sums) {
  return multiply(ctx, product, true, sums.as<float>());
}

}  // namespace shoal::ops::cuda
