// What a model's steps take of their workspace: the same allocations as in dual_ar.cc, of a workspace that
// counts.
#include <algorithm>

#include "models/dual_ar/bind.h"
#include "models/dual_ar/block.h"
#include "models/dual_ar/dual_ar.h"
#include "models/dual_ar/fast_frame.h"
#include "ops/device_state.h"
#include "ops/planning_context.h"

namespace shoal::dual_ar {
namespace {

// The copy of a product's input. Of 8 bits: whole groups of 128, with a scale and an offset for each.
void count_input(ops::Context& ctx, DType operand, int64_t rows, int64_t width) {
  if (operand != DType::i8) {
    ctx.workspace->alloc(operand, {rows, width});
    return;
  }
  constexpr int64_t kGroup = 128;
  const int64_t groups = (width + kGroup - 1) / kGroup;
  ctx.workspace->alloc(DType::i8, {rows, groups * kGroup});
  ctx.workspace->alloc(DType::f32, {rows, groups});
  ctx.workspace->alloc(DType::i32, {rows, groups});
}

// A transformer over so many rows.
void count_block(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights, int64_t rows) {
  const BlockBuffers buffers{ctx, config, weights, rows};
  buffers.qkv();
  buffers.heads();
  buffers.inner();
  const int64_t widest = std::max({config.dim, config.attention_width(), config.hidden});
  count_input(ctx, weights.qkv.format.operand, rows, widest);
}

// Of at most so many rows, with the sums that wait between blocks, which only those of few rows do.
void count_stream(ops::Context& ctx, const BlockConfig& config, const std::vector<BlockWeights>& layers,
                  int64_t rows) {
  if (layers.empty()) return;
  const BlockWeights& weights = layers[0];
  {
    const Workspace::Scope scope(*ctx.workspace);
    count_block(ctx, config, weights, rows);
  }
  if (!ops::computes_by_itself(ctx.device)) return;
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t few = std::min(rows, ops::kMostPendingRows);
  ctx.workspace->alloc(DType::u8, {ops::pending_bytes(few, config.dim, weights.qkv.format.operand)});
  count_block(ctx, config, weights, few);
}

}  // namespace

int64_t DualAr::decode_workspace_bytes(Device device, int64_t rows) const {
  ops::PlanningContext planning(device);
  ops::Context& ctx = planning.context();
  const Workspace::Scope scope(*ctx.workspace);
  alloc_rows(ctx, rows);
  count_stream(ctx, config_.slow, weights_->slow_layers, rows);
  alloc_logits(ctx, rows);
  if (config_.norm_fast_input) alloc_rows(ctx, rows);
  const FastBuffers fast(*ctx.workspace, config_, rows);
  count_stream(ctx, config_.fast, weights_->fast_layers, fast.x.dim(0));
  return ctx.workspace->peak_bytes();
}

int64_t DualAr::prefill_workspace_bytes(Device device, int64_t columns) const {
  ops::PlanningContext planning(device);
  ops::Context& ctx = planning.context();
  const Workspace::Scope scope(*ctx.workspace);
  alloc_rows(ctx, columns);
  // Ids, and where the rows stand in their sequences.
  ctx.workspace->alloc(DType::i32, {columns, config_.columns() + 2});
  count_stream(ctx, config_.slow, weights_->slow_layers, columns);
  return ctx.workspace->peak_bytes();
}

int64_t DualAr::launches_of_step() const {
  constexpr int64_t kOfBlock = 7, kOfPass = 4;
  constexpr int64_t kAround = 8;  // ids to the device, embedding, head, token, the fast input, frames back
  return config_.slow_layers * kOfBlock +
         (config_.num_codebooks - 1) * (config_.fast_layers * kOfBlock + kOfPass) + kAround;
}

}  // namespace shoal::dual_ar
