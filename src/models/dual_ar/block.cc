#include "models/dual_ar/block.h"

#include "ops/linear.h"
#include "ops/norm.h"

namespace shoal::dual_ar {

int64_t BlockWeights::bytes() const {
  return attention_norm.bytes() + qkv.bytes() + q_norm.bytes() + k_norm.bytes() + out.bytes() +
         ffn_norm.bytes() + gate_up.bytes() + down.bytes();
}

void forward_block(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights, TensorView rope,
                   const ops::BatchPlan& plan, const ops::KvLayer& cache, TensorView x) {
  Workspace& workspace = *ctx.workspace;
  const Workspace::Scope scope(workspace);
  const int64_t rows = x.dim(0);
  const ops::HeadLayout layout{config.heads, config.kv_heads, config.head_dim};
  ops::Epilogue onto_residual;
  onto_residual.accumulate = true;

  const TensorView u = workspace.like(x);
  ops::rms_norm(ctx, x, weights.attention_norm, config.norm_eps, u);
  const TensorView qkv = workspace.alloc(DType::f32, {rows, config.qkv_width()});
  ops::linear(ctx, u, weights.qkv, qkv);
  ops::qk_norm_rope(ctx, qkv, layout, {weights.q_norm, weights.k_norm, config.norm_eps}, rope,
                    plan.positions);
  ops::append_kv(ctx, qkv, layout, plan, cache);
  const TensorView heads = workspace.alloc(DType::f32, {rows, config.attention_width()});
  ops::paged_attention(ctx, qkv, layout, plan, cache, /*window=*/0, heads);
  ops::linear(ctx, heads, weights.out, x, onto_residual);

  ops::rms_norm(ctx, x, weights.ffn_norm, config.norm_eps, u);
  const TensorView inner = workspace.alloc(DType::f32, {rows, config.hidden});
  ops::linear_swiglu(ctx, u, weights.gate_up, inner);
  ops::linear(ctx, inner, weights.down, x, onto_residual);
}

}  // namespace shoal::dual_ar
