#include "models/dual_ar/block.h"

namespace shoal::dual_ar {

int64_t BlockWeights::bytes() const {
  return attention_norm.bytes() + qkv.bytes() + q_norm.bytes() + k_norm.bytes() + out.bytes() +
         ffn_norm.bytes() + gate_up.bytes() + down.bytes();
}

void forward_block(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights, TensorView rope,
                   const ops::BatchPlan& plan, const ops::KvLayer& cache, ops::Residual& x) {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t rows = x.rows.dim(0);
  const ops::AttentionPlan attention{{config.heads, config.kv_heads, config.head_dim}, rope, /*window=*/0};
  const ops::QkNorm head_norms{weights.q_norm, weights.k_norm, config.norm_eps};

  const TensorView qkv = ctx.workspace->alloc(DType::f32, {rows, config.qkv_width()});
  ops::norm_linear(ctx, x, {weights.attention_norm, config.norm_eps}, weights.qkv, qkv);
  const TensorView heads =
      ctx.workspace->alloc(ops::product_input(ctx, weights.out), {rows, config.attention_width()});
  ops::attend(ctx, qkv, attention, head_norms, plan, cache, heads);
  ops::add_linear(ctx, heads, weights.out, x);

  const TensorView inner = ctx.workspace->alloc(ops::product_input(ctx, weights.down), {rows, config.hidden});
  ops::norm_swiglu(ctx, x, {weights.ffn_norm, config.norm_eps}, weights.gate_up, inner);
  ops::add_linear(ctx, inner, weights.down, x);
}

}  // namespace shoal::dual_ar
