#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"
#include "ops/device_state.h"
#include "ops/linear_checks.h"

namespace shoal::ops {
namespace {

constexpr int64_t kMostHeadDim = 1024;

void check_qkv(const char* op, TensorView qkv, const HeadLayout& layout) {
  CHECK(layout.kv_heads > 0 && layout.heads > 0 && layout.heads % layout.kv_heads == 0, op, ": ",
        layout.heads, " query heads, ", layout.kv_heads, " kv heads");
  CHECK(layout.head_dim > 0 && layout.head_dim % 2 == 0 && layout.head_dim <= kMostHeadDim, op, ": head_dim ",
        layout.head_dim);
  CHECK(qkv.rank() == 2 && qkv.dtype() == DType::f32 && qkv.dim(1) == layout.qkv_width(), op, ": qkv is ",
        name_of(qkv.dtype()), " ", qkv.shape(), ", expected F32 [rows, ", layout.qkv_width(), "]");
}

void check_table(const char* op, const char* name, TensorView table, const Shape& shape) {
  CHECK(table.dtype() == DType::i32 && table.shape() == shape && table.is_contiguous(), op, ": the device's ",
        name, " are ", name_of(table.dtype()), " ", table.shape(), ", expected dense I32 ", shape);
}

void check_cache(const char* op, const Context& ctx, const HeadLayout& layout, const BatchPlan& plan,
                 const KvLayer& cache) {
  const DType dtype = cache.k.dtype();
  CHECK(can_attend(ctx.device, layout.head_dim, dtype) && cache.k.rank() == 4 && cache.k.is_contiguous() &&
            cache.k.shape() == (Shape{cache.k.dim(0), layout.kv_heads, plan.page_size, layout.head_dim}),
        op, ": keys are ", name_of(dtype), " ", cache.k.shape(), ", expected dense F32, BF16 or I8 [pages, ",
        layout.kv_heads, ", ", plan.page_size, ", ", layout.head_dim, "]");
  CHECK(cache.v.dtype() == dtype && cache.v.shape() == cache.k.shape() && cache.v.is_contiguous(), op,
        ": values are ", name_of(cache.v.dtype()), " ", cache.v.shape(), ", keys ", cache.k.shape());
  for (const TensorView& scales : {cache.k_scales, cache.v_scales})
    if (dtype != DType::i8)
      CHECK(scales.empty(), op, ": scales beside keys of ", name_of(dtype));
    else
      CHECK(scales.dtype() == DType::f16 && scales.is_contiguous() &&
                scales.shape() == (Shape{cache.k.dim(0), layout.kv_heads, plan.page_size}),
            op, ": scales are ", name_of(scales.dtype()), " ", scales.shape(), ", expected dense F16 [",
            cache.k.dim(0), ", ", layout.kv_heads, ", ", plan.page_size, "]");
}

void check_plan(const char* op, const Context& ctx, TensorView qkv, const HeadLayout& layout,
                const BatchPlan& plan, const KvLayer& cache) {
  check_qkv(op, qkv, layout);
  const std::span<const int32_t> offsets = plan.rows.offsets;
  CHECK(!offsets.empty() && static_cast<int64_t>(plan.positions.size()) == qkv.dim(0), op, ": ",
        plan.positions.size(), " positions for qkv ", qkv.shape());
  const int64_t sequences = plan.rows.sequences();
  CHECK(plan.page_size > 0 && plan.pages_per_sequence >= 0 &&
            static_cast<int64_t>(plan.page_table.size()) == sequences * plan.pages_per_sequence,
        op, ": page table of ", plan.page_table.size(), " entries for ", sequences, " sequences of ",
        plan.pages_per_sequence, " pages");
  check_cache(op, ctx, layout, plan, cache);
  if (!on_cpu(ctx)) {
    check_table(op, "offsets", plan.tables.offsets, {sequences + 1});
    check_table(op, "positions", plan.tables.positions, {qkv.dim(0)});
    check_table(op, "sequences", plan.tables.sequences, {qkv.dim(0)});
    return check_table(op, "pages", plan.tables.page_table, {sequences, plan.pages_per_sequence});
  }
  CHECK(offsets[0] == 0 && std::is_sorted(offsets.begin(), offsets.end()) && plan.rows.rows() == qkv.dim(0),
        op, ": offsets must rise from 0 to ", qkv.dim(0), " rows, not ", plan.rows.rows());
  for (const int32_t position : plan.positions)
    CHECK(0 <= position && position < plan.pages_per_sequence * plan.page_size, op, ": position ", position,
          " is outside ", plan.pages_per_sequence, " pages of ", plan.page_size);
}

void check_rope(const char* op, const Context& ctx, TensorView qkv, const HeadLayout& layout,
                const QkNorm& norm, TensorView rope, const BatchPlan& plan) {
  check_qkv(op, qkv, layout);
  for (const TensorView& weight : {norm.q, norm.k})
    CHECK(weight.empty() || (weight.dtype() == DType::f32 && weight.shape() == Shape{layout.head_dim}), op,
          ": norm weight is ", name_of(weight.dtype()), " ", weight.shape(), ", expected F32 [",
          layout.head_dim, "]");
  CHECK(rope.rank() == 3 && rope.dtype() == DType::f32 && rope.is_contiguous() &&
            rope.shape() == (Shape{rope.dim(0), layout.head_dim / 2, 2}),
        op, ": rope is ", rope.shape(), ", expected [positions, ", layout.head_dim / 2, ", 2]");
  CHECK(static_cast<int64_t>(plan.positions.size()) == qkv.dim(0), op, ": ", plan.positions.size(),
        " positions for qkv ", qkv.shape());
  if (!on_cpu(ctx)) return check_table(op, "positions", plan.tables.positions, {qkv.dim(0)});
  for (const int32_t position : plan.positions)
    if (position < 0 || position >= rope.dim(0))
      fail(ErrorCode::invalid_argument, op, ": position ", position, " is outside the table of ", rope.dim(0),
           " positions");
}

// narrow: the output may have 16 bits on a GPU.
void check_out(const char* op, const Context& ctx, TensorView qkv, const HeadLayout& layout, TensorView out,
               bool narrow) {
  const bool right_dtype =
      out.dtype() == DType::f32 ||
      (narrow && !on_cpu(ctx) && (out.dtype() == DType::bf16 || out.dtype() == DType::f16));
  CHECK(right_dtype && out.shape() == (Shape{qkv.dim(0), layout.heads * layout.head_dim}), op, ": out is ",
        name_of(out.dtype()), " ", out.shape(), ", expected F32 [", qkv.dim(0), ", ",
        layout.heads * layout.head_dim, "]");
}

void check_attend(const char* op, const Context& ctx, TensorView qkv, const AttentionPlan& attention,
                  const QkNorm& norm, const BatchPlan& plan, const KvLayer& cache, TensorView out) {
  check_plan(op, ctx, qkv, attention.layout, plan, cache);
  check_rope(op, ctx, qkv, attention.layout, norm, attention.rope, plan);
  CHECK(attention.window >= 0, op, ": window ", attention.window);
  check_out(op, ctx, qkv, attention.layout, out, /*narrow=*/true);
}

void check_pages(const KvLayer& cache, const KvLayer& first) {
  CHECK(cache.k.rank() == 4 && cache.k.is_contiguous() && cache.v.is_contiguous() &&
            cache.v.shape() == cache.k.shape() && cache.v.dtype() == cache.k.dtype(),
        "copy_kv_pages: keys are ", name_of(cache.k.dtype()), " ", cache.k.shape(), ", values ",
        name_of(cache.v.dtype()), " ", cache.v.shape(),
        ", expected both dense [pages, kv_heads, page_size, head_dim]");
  CHECK(cache.k.shape() == first.k.shape() && cache.k.dtype() == first.k.dtype() &&
            cache.k_scales.empty() == first.k_scales.empty(),
        "copy_kv_pages: layers differ: ", name_of(first.k.dtype()), " ", first.k.shape(), " and ",
        name_of(cache.k.dtype()), " ", cache.k.shape());
  const Shape one_each{cache.k.dim(0), cache.k.dim(1), cache.k.dim(2)};
  CHECK(cache.k_scales.empty() == cache.v_scales.empty(), "copy_kv_pages: scales of one side");
  for (const TensorView& scales : {cache.k_scales, cache.v_scales})
    CHECK(scales.empty() || (scales.shape() == one_each && scales.is_contiguous() &&
                             scales.dtype() == cache.k_scales.dtype()),
          "copy_kv_pages: scales are ", name_of(scales.dtype()), " ", scales.shape(), ", expected dense ",
          one_each);
}

void check_page_copies(int64_t pages_of_each, std::span<const int32_t> from, std::span<const int32_t> to) {
  CHECK(from.size() == to.size(), "copy_kv_pages: ", from.size(), " pages to copy, ", to.size(),
        " places for them");
  for (const std::span<const int32_t> pages : {from, to})
    for (const int32_t page : pages)
      CHECK(0 <= page && page < pages_of_each, "copy_kv_pages: page ", page, " of ", pages_of_each);
  std::vector<int32_t> written(to.begin(), to.end());
  std::sort(written.begin(), written.end());
  const auto twice = std::adjacent_find(written.begin(), written.end());
  CHECK(twice == written.end(), "copy_kv_pages: page ", *twice, " is written twice");
  for (const int32_t page : from)
    CHECK(!std::binary_search(written.begin(), written.end(), page), "copy_kv_pages: page ", page,
          " is read and written");
}

}  // namespace

bool can_attend(Device device, int64_t head_dim, DType cache) {
  const bool is_gpu = computes_by_itself(device);
  if (cache == DType::i8) return !is_gpu || head_dim == 32 || head_dim == 64 || head_dim == 128;
  return cache == DType::f32 || cache == DType::bf16 || (cache == DType::f16 && is_gpu);
}

Tensor make_rope_table(int64_t positions, int64_t head_dim, double base) {
  CHECK(positions >= 0 && head_dim > 0 && head_dim % 2 == 0, "rope table: ", positions,
        " positions, head_dim ", head_dim);
  Tensor table(DType::f32, {positions, head_dim / 2, 2});
  float* out = table.as<float>();
  std::vector<float> theta;
  for (int64_t j = 0; j < head_dim / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(head_dim);
    theta.push_back(1.0f /
                    static_cast<float>(std::pow(static_cast<float>(base), static_cast<double>(exponent))));
  }
  for (int64_t position = 0; position < positions; ++position)
    for (const float step : theta) {
      // The rounding of the angle to f32 is part of the definition; its cosine is not allowed an error.
      const double angle = static_cast<float>(position) * step;
      *out++ = round_to_bf16(static_cast<float>(std::cos(angle)));
      *out++ = round_to_bf16(static_cast<float>(std::sin(angle)));
    }
  return table;
}

void qk_norm_rope(Context& ctx, TensorView qkv, const HeadLayout& layout, const QkNorm& norm, TensorView rope,
                  const BatchPlan& plan) {
  check_rope("qk_norm_rope", ctx, qkv, layout, norm, rope, plan);
  if (qkv.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::qk_norm_rope(ctx, qkv, layout, norm, rope, plan);
  cuda::qk_norm_rope(ctx, qkv, layout, norm, rope, plan);
}

void append_kv(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
               const KvLayer& cache) {
  check_plan("append_kv", ctx, qkv, layout, plan, cache);
  if (qkv.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::append_kv(ctx, qkv, layout, plan, cache);
  cuda::append_kv(ctx, qkv, layout, plan, cache);
}

void copy_kv_pages(Context& ctx, std::span<const KvLayer> layers, std::span<const int32_t> from,
                   std::span<const int32_t> to) {
  if (layers.empty()) return;
  for (const KvLayer& layer : layers) check_pages(layer, layers.front());
  check_page_copies(layers.front().k.dim(0), from, to);
  if (from.empty()) return;
  if (!on_cpu(ctx)) return cuda::copy_kv_pages(ctx, layers, from, to);
  cpu::copy_kv_pages(ctx, layers, from, to);
}

void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out) {
  check_plan("paged_attention", ctx, qkv, layout, plan, cache);
  CHECK(window >= 0, "paged_attention: window ", window);
  check_out("paged_attention", ctx, qkv, layout, out, /*narrow=*/false);
  if (qkv.dim(0) == 0) return;
  if (!on_cpu(ctx)) return cuda::paged_attention(ctx, qkv, layout, plan, cache, window, out);
  cpu::paged_attention(ctx, qkv, layout, plan, cache, window, out);
}

void attend(Context& ctx, TensorView qkv, const AttentionPlan& attention, const QkNorm& norm,
            const BatchPlan& plan, const KvLayer& cache, TensorView out) {
  const HeadLayout& layout = attention.layout;
  if (on_cpu(ctx)) {
    qk_norm_rope(ctx, qkv, layout, norm, attention.rope, plan);
    append_kv(ctx, qkv, layout, plan, cache);
    return paged_attention(ctx, qkv, layout, plan, cache, attention.window, out);
  }
  check_attend("attend", ctx, qkv, attention, norm, plan, cache, out);
  if (qkv.dim(0) == 0) return;
  cuda::attend(ctx, qkv, attention, norm, plan, cache, out);
}

void norm_attend(Context& ctx, Residual& x, const RmsNorm& norm, const PackedMatrix& weight,
                 const AttentionPlan& attention, const QkNorm& head_norms, const BatchPlan& plan,
                 const KvLayer& cache, TensorView out) {
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView qkv = ctx.workspace->alloc(DType::f32, {x.rows.dim(0), attention.layout.qkv_width()});
  if (on_cpu(ctx) || x.pending ||
      !cuda::has_norm_attend(ctx, weight, qkv.dim(0), attention.layout, plan, cache)) {
    norm_linear(ctx, x, norm, weight, qkv);
    return attend(ctx, qkv, attention, head_norms, plan, cache, out);
  }
  check_norm_linear(x.rows, norm, weight, qkv);
  check_attend("norm_attend", ctx, qkv, attention, head_norms, plan, cache, out);
  cuda::norm_attend(ctx, x.rows, norm, weight, qkv, attention, head_norms, plan, cache, out);
}

}  // namespace shoal::ops
