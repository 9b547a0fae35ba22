#include "models/dual_ar/block.h"

#include "ops/embedding.h"
#include "ops/norm.h"

namespace shoal::dual_ar {
namespace {

// What a product reads of the stream, which it norms on its own.
void show_normed(ops::Context& ctx, ops::Residual& x, const ops::RmsNorm& norm,
                 BlockObserver::Product product, BlockObserver* observer) {
  if (!observer) return;
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView normed = ctx.workspace->alloc(DType::f32, x.rows.shape());
  ops::rms_norm(ctx, ops::settled(ctx, x), norm.weight, norm.eps, normed);
  observer->reads(product, normed);
}

// What attention makes of the stream.   -> [rows, attention_width], in the dtype that the next product reads
TensorView attended_heads(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights,
                          TensorView rope, const ops::BatchPlan& plan, const ops::KvLayer& cache,
                          ops::Residual& x, BlockObserver* observer) {
  const int64_t rows = x.rows.dim(0);
  const ops::AttentionPlan attention{{config.heads, config.kv_heads, config.head_dim}, rope, /*window=*/0};
  const ops::QkNorm head_norms{weights.q_norm, weights.k_norm, config.norm_eps};
  const ops::RmsNorm norm{weights.attention_norm, config.norm_eps};

  const TensorView heads =
      ctx.workspace->alloc(ops::product_input(ctx, weights.out), {rows, config.attention_width()});
  show_normed(ctx, x, norm, BlockObserver::kQkv, observer);
  ops::norm_attend(ctx, x, norm, weights.qkv, attention, head_norms, plan, cache, heads);
  if (observer) observer->reads(BlockObserver::kOut, heads);
  return heads;
}

// Adds what is behind attention.   heads: those of x's rows, as attended_heads has them or f32
void add_attended(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights, TensorView heads,
                  ops::Residual& x, BlockObserver* observer) {
  ops::add_linear(ctx, heads, weights.out, x);
  const ops::RmsNorm norm{weights.ffn_norm, config.norm_eps};
  const TensorView inner =
      ctx.workspace->alloc(ops::product_input(ctx, weights.down), {x.rows.dim(0), config.hidden});
  show_normed(ctx, x, norm, BlockObserver::kGateUp, observer);
  ops::norm_swiglu(ctx, x, norm, weights.gate_up, inner);
  if (observer) observer->reads(BlockObserver::kDown, inner);
  ops::add_linear(ctx, inner, weights.down, x);
}

}  // namespace

int64_t BlockWeights::bytes() const {
  return attention_norm.bytes() + qkv.bytes() + q_norm.bytes() + k_norm.bytes() + out.bytes() +
         ffn_norm.bytes() + gate_up.bytes() + down.bytes();
}

void forward_block(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights, TensorView rope,
                   const ops::BatchPlan& plan, const ops::KvLayer& cache, ops::Residual& x,
                   BlockObserver* observer) {
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView heads = attended_heads(ctx, config, weights, rope, plan, cache, x, observer);
  add_attended(ctx, config, weights, heads, x, observer);
}

void forward_wanted_rows(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights,
                         TensorView rope, const ops::BatchPlan& plan, const ops::KvLayer& cache,
                         ops::Residual& x, TensorView wanted, ops::Residual& y) {
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView heads = attended_heads(ctx, config, weights, rope, plan, cache, x, nullptr);
  const TensorView wanted_heads = ctx.workspace->alloc(DType::f32, {wanted.dim(0), config.attention_width()});
  ops::gather_rows(ctx, heads, wanted, wanted_heads);
  ops::gather_rows(ctx, ops::settled(ctx, x), wanted, y.rows);
  add_attended(ctx, config, weights, wanted_heads, y, nullptr);
}

}  // namespace shoal::dual_ar
