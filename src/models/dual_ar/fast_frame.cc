#include "models/dual_ar/fast_frame.h"

#include <numeric>

#include "models/dual_ar/block.h"
#include "models/dual_ar/dual_ar.h"
#include "models/dual_ar/step_array.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace shoal::dual_ar {

FastFrame::FastFrame(ops::Context& ctx, const Config& config, const Weights& weights, int64_t rows,
                     Taps* taps)
    : ctx_(ctx), config_(config), weights_(weights), rows_(rows), taps_(taps) {
  Workspace& workspace = *ctx.workspace;
  // f32 in bf16 models too: at most 16 positions are not worth the rounding.
  const Shape cache{config.fast_layers, rows, config.fast.kv_heads, config.num_codebooks,
                    config.fast.head_dim};
  keys_ = workspace.alloc(DType::f32, cache);
  values_ = workspace.alloc(DType::f32, cache);
  offsets_ = step_array<int32_t>(workspace, rows + 1);
  positions_ = step_array<int32_t>(workspace, 2 * rows);
  ids_ = step_array<int32_t>(workspace, rows);
  page_table_ = step_array<int32_t>(workspace, rows);
  std::iota(page_table_.begin(), page_table_.end(), 0);
  x_ = workspace.alloc(DType::f32, {2 * rows, config.fast.dim});
  normed_ = workspace.alloc(DType::f32, {rows, config.fast.dim});
  logits_ = workspace.alloc(DType::f32, {rows, config.residual_codes()});
}

ops::BatchPlan FastFrame::plan(int64_t rows_per_sequence) {
  for (size_t s = 0; s < offsets_.size(); ++s)
    offsets_[s] = static_cast<int32_t>(static_cast<int64_t>(s) * rows_per_sequence);
  const auto positions = positions_.first(static_cast<size_t>(rows_ * rows_per_sequence));
  for (size_t i = 0; i < positions.size(); ++i)
    positions[i] = static_cast<int32_t>(position_ + static_cast<int64_t>(i) % rows_per_sequence);
  position_ += rows_per_sequence;
  return {.rows = {offsets_},
          .positions = positions,
          .page_table = page_table_,
          .pages_per_sequence = 1,
          .page_size = config_.num_codebooks};
}

TensorView FastFrame::first_pass(TensorView slow, std::span<const int32_t> codes) {
  const int64_t dim = config_.fast.dim;
  const TensorView pairs = x_.reshape({rows_, 2 * dim});  // both positions of a sequence side by side
  project(slow, pairs.columns(0, dim));
  if (taps_) taps_->record("fast_in", 0, pairs.columns(0, dim));
  ops::gather_rows(ctx_, weights_.fast_embedding, codes, pairs.columns(dim, 2 * dim));
  run_layers(plan(2), x_);
  return logits_of(pairs.columns(dim, 2 * dim));
}

TensorView FastFrame::next_pass(std::span<const int32_t> codes) {
  const TensorView x = x_.slice(0, rows_);
  ops::gather_rows(ctx_, weights_.fast_embedding, codes, x);
  run_layers(plan(1), x);
  return logits_of(x);
}

void FastFrame::project(TensorView slow, TensorView out) {
  if (weights_.fast_in.outputs > 0) return ops::linear(ctx_, slow, weights_.fast_in, out);
  std::iota(ids_.begin(), ids_.end(), 0);
  ops::gather_rows(ctx_, slow, ids_, out);
}

void FastFrame::run_layers(const ops::BatchPlan& plan, TensorView x) {
  const Shape layer{rows_, config_.fast.kv_heads, config_.num_codebooks, config_.fast.head_dim};
  for (int64_t i = 0; i < config_.fast_layers; ++i) {
    const ops::KvLayer cache{keys_.slice(i, i + 1).reshape(layer), values_.slice(i, i + 1).reshape(layer)};
    forward_block(ctx_, config_.fast, weights_.fast_layers[static_cast<size_t>(i)], weights_.fast_rope, plan,
                  cache, x);
    if (taps_) taps_->record("fast_layer", i, x);
  }
}

TensorView FastFrame::logits_of(TensorView last) {
  ops::rms_norm(ctx_, last, weights_.fast_norm, config_.fast.norm_eps, normed_);
  ops::linear(ctx_, normed_, weights_.fast_head, logits_);
  return logits_;
}

}  // namespace shoal::dual_ar
