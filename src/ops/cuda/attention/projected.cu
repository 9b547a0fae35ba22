// norm_attend() for prompts: the product writes prepared heads, so that qkv, twice as large in f32, is
// neither written nor read.
#include "ops/cuda/attention/attention_rows.cuh"
#include "ops/cuda/attention/heads_product.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

HeadStores stores_of(const AttentionCall& call, TensorView rounded_q, bool single_rows_aside) {
  const Rows rows = rows_of(call);
  return {.dtype = call.cache.k.dtype(),
          .pages = pages_of<uint16_t>(call),
          .turn = turn_of(call),
          .q = static_cast<uint16_t*>(rounded_q.data()),
          .heads = rows.heads,
          .positions = rows.positions,
          .sequences = rows.sequences,
          .offsets = single_rows_aside ? rows.offsets : nullptr};
}

}  // namespace

bool has_norm_attend(Context& ctx, const PackedMatrix& weight, int64_t rows, const HeadLayout& layout,
                     const BatchPlan& plan, const KvLayer& cache) {
  const DType dtype = cache.k.dtype();
  return !plan.tables.single_rows && layout.head_dim == kStoredHeadDim &&
         (dtype == DType::bf16 || dtype == DType::f16) &&
         suits_heads(product_by(weight, rows), machine_of(ctx));
}

void norm_attend(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& weight, TensorView qkv,
                 const AttentionPlan& attention, const QkNorm& head_norms, const BatchPlan& plan,
                 const KvLayer& cache, TensorView out) {
  const AttentionCall call{qkv,   attention.layout, head_norms, attention.rope, &plan,
                           cache, attention.window, out};
  check_alignment(call);
  const bool mixed = sets_single_rows_aside(call);
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView rounded_q =
      ctx.workspace->alloc(cache.k.dtype(), {qkv.dim(0), attention.layout.heads * attention.layout.head_dim});
  {
    const Workspace::Scope operand(*ctx.workspace);
    x = product_operand(ctx, x, weight.format.operand, &norm);
    const Product product = with_input(product_by(weight, qkv.dim(0), into(qkv, weight)), x);
    heads_product(ctx, product, stores_of(call, rounded_q, mixed));
  }
  if (mixed) decode_attention(ctx, call, choose_decode_split(ctx, call));
  prefill_attention(ctx, call, rounded_q, mixed);
}

}  // namespace shoal::ops::cuda
