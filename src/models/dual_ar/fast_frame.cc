#include "models/dual_ar/fast_frame.h"

#include "models/dual_ar/block.h"
#include "models/dual_ar/dual_ar.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/transfer.h"

namespace shoal::dual_ar {
namespace {

constexpr int64_t kLayerAlignment = 16;  // floats: keys and values of every layer start a cache line

}  // namespace

FastBuffers::FastBuffers(Workspace& workspace, const Config& config, int64_t rows) {
  // f32 in narrower models too: at most 16 positions are not worth the rounding.
  const int64_t layer = rows * config.fast.kv_heads * config.num_codebooks * config.fast.head_dim;
  const Shape cache{config.fast_layers, (layer + kLayerAlignment - 1) / kLayerAlignment * kLayerAlignment};
  keys = workspace.alloc(DType::f32, cache);
  values = workspace.alloc(DType::f32, cache);
  x = workspace.alloc(DType::f32, {2 * rows, config.fast.dim});
  logits = workspace.alloc(DType::f32, {rows, config.residual_codes()});
}

FastFrame::FastFrame(ops::Context& ctx, const Config& config, const Weights& weights,
                     const StepMemory& memory, int64_t rows, Taps* taps)
    : ctx_(ctx),
      config_(config),
      weights_(weights),
      memory_(memory),
      rows_(rows),
      taps_(taps),
      buffers_(*ctx.workspace, config, rows) {}

ops::BatchPlan FastFrame::first_plan() const {
  const StepMemory& m = memory_;
  return {.rows = {m.pair_offsets_.first(rows_ + 1)},
          .positions = m.pair_positions_.first(2 * rows_),
          .page_table = m.counting_.first(rows_),
          .pages_per_sequence = 1,
          .page_size = config_.num_codebooks,
          .tables = {.offsets = m.pair_offsets_.device_first(rows_ + 1),
                     .positions = m.pair_positions_.device_first(2 * rows_),
                     .sequences = m.pair_sequences_.device_first(2 * rows_),
                     .page_table = m.counting_.device_first(rows_).reshape({rows_, 1})}};
}

ops::BatchPlan FastFrame::next_plan() const {
  const StepMemory& m = memory_;
  const ConstantIds& positions = m.pass_positions_[static_cast<size_t>(position_)];
  return {.rows = {m.counting_.first(rows_ + 1)},
          .positions = positions.first(rows_),
          .page_table = m.counting_.first(rows_),
          .pages_per_sequence = 1,
          .page_size = config_.num_codebooks,
          .tables = {.offsets = m.counting_.device_first(rows_ + 1),
                     .positions = positions.device_first(rows_),
                     .sequences = m.counting_.device_first(rows_),
                     .page_table = m.counting_.device_first(rows_).reshape({rows_, 1}),
                     .single_rows = true}};
}

TensorView FastFrame::first_pass(TensorView slow, TensorView codes) {
  const int64_t dim = config_.fast.dim;
  const TensorView pairs = buffers_.x.reshape({rows_, 2 * dim});  // both positions of a sequence side by side
  project(slow, pairs.columns(0, dim));
  if (taps_) {
    const Tensor both = ops::to_host(ctx_, pairs);
    taps_->record("fast_in", 0, both.view().columns(0, dim));
  }
  ops::gather_rows(ctx_, weights_.fast_embedding, codes, pairs.columns(dim, 2 * dim));
  const Workspace::Scope scope(*ctx_.workspace);
  ops::Residual stream(ctx_, buffers_.x, weights_.fast_head.format.operand);
  run_layers(first_plan(), stream);
  ops::settled(ctx_, stream);
  position_ = 2;
  ops::norm_linear(ctx_, pairs.columns(dim, 2 * dim), head_norm(), weights_.fast_head, buffers_.logits);
  return buffers_.logits;
}

TensorView FastFrame::next_pass(TensorView codes) {
  const TensorView x = buffers_.x.slice(0, rows_);
  ops::gather_rows(ctx_, weights_.fast_embedding, codes, x);
  const Workspace::Scope scope(*ctx_.workspace);
  ops::Residual stream(ctx_, x, weights_.fast_head.format.operand);
  run_layers(next_plan(), stream);
  ++position_;
  ops::norm_linear(ctx_, stream, head_norm(), weights_.fast_head, buffers_.logits);
  return buffers_.logits;
}

void FastFrame::project(TensorView slow, TensorView out) {
  if (weights_.fast_in.outputs > 0) return ops::linear(ctx_, slow, weights_.fast_in, out);
  ops::gather_rows(ctx_, slow, memory_.counting_.device_first(rows_), out);
}

void FastFrame::run_layers(const ops::BatchPlan& plan, ops::Residual& x) {
  const Shape layer{rows_, config_.fast.kv_heads, config_.num_codebooks, config_.fast.head_dim};
  const auto of_layer = [&](TensorView all, int64_t i) {
    return all.slice(i, i + 1).columns(0, layer.elements()).reshape(layer);
  };
  for (int64_t i = 0; i < config_.fast_layers; ++i) {
    const ops::KvLayer cache{of_layer(buffers_.keys, i), of_layer(buffers_.values, i)};
    forward_block(ctx_, config_.fast, weights_.fast_layers[static_cast<size_t>(i)], weights_.fast_rope, plan,
                  cache, x);
    if (taps_) taps_->record("fast_layer", i, ops::to_host(ctx_, ops::settled(ctx_, x)));
  }
}

ops::RmsNorm FastFrame::head_norm() const { return {weights_.fast_norm, config_.fast.norm_eps}; }

}  // namespace shoal::dual_ar
