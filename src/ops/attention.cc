#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/cpu/vector.h"
#include "ops/cpu/vector_kernels.h"
#include "ops/cuda_backend.h"

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

void check_plan(const char* op, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                const KvLayer& cache) {
  check_qkv(op, qkv, layout);
  const std::span<const int32_t> offsets = plan.rows.offsets;
  CHECK(!offsets.empty() && offsets[0] == 0 && std::is_sorted(offsets.begin(), offsets.end()), op,
        ": offsets must rise from 0");
  CHECK(plan.rows.rows() == qkv.dim(0) && static_cast<int64_t>(plan.positions.size()) == qkv.dim(0), op, ": ",
        plan.rows.rows(), " rows, ", plan.positions.size(), " positions for qkv ", qkv.shape());
  CHECK(plan.page_size > 0 && plan.pages_per_sequence >= 0 &&
            static_cast<int64_t>(plan.page_table.size()) == plan.rows.sequences() * plan.pages_per_sequence,
        op, ": page table of ", plan.page_table.size(), " entries for ", plan.rows.sequences(),
        " sequences of ", plan.pages_per_sequence, " pages");
  CHECK((cache.k.dtype() == DType::f32 || cache.k.dtype() == DType::bf16) && cache.k.rank() == 4 &&
            cache.k.is_contiguous() &&
            cache.k.shape() == (Shape{cache.k.dim(0), layout.kv_heads, plan.page_size, layout.head_dim}),
        op, ": keys are ", name_of(cache.k.dtype()), " ", cache.k.shape(),
        ", expected dense F32 or BF16 [pages, ", layout.kv_heads, ", ", plan.page_size, ", ", layout.head_dim,
        "]");
  CHECK(cache.v.dtype() == cache.k.dtype() && cache.v.shape() == cache.k.shape() && cache.v.is_contiguous(),
        op, ": values are ", name_of(cache.v.dtype()), " ", cache.v.shape(), ", keys ", cache.k.shape());
  for (const int32_t position : plan.positions)
    CHECK(0 <= position && position < plan.pages_per_sequence * plan.page_size, op, ": position ", position,
          " is outside ", plan.pages_per_sequence, " pages of ", plan.page_size);
}

void check_rope(TensorView qkv, const HeadLayout& layout, const QkNorm& norm, TensorView rope,
                std::span<const int32_t> positions) {
  check_qkv("qk_norm_rope", qkv, layout);
  for (const TensorView& weight : {norm.q, norm.k})
    CHECK(weight.empty() || (weight.dtype() == DType::f32 && weight.shape() == Shape{layout.head_dim}),
          "qk_norm_rope: norm weight is ", name_of(weight.dtype()), " ", weight.shape(), ", expected F32 [",
          layout.head_dim, "]");
  CHECK(rope.rank() == 3 && rope.dtype() == DType::f32 && rope.is_contiguous() &&
            rope.shape() == (Shape{rope.dim(0), layout.head_dim / 2, 2}),
        "qk_norm_rope: rope is ", rope.shape(), ", expected [positions, ", layout.head_dim / 2, ", 2]");
  CHECK(static_cast<int64_t>(positions.size()) == qkv.dim(0), "qk_norm_rope: ", positions.size(),
        " positions for qkv ", qkv.shape());
  for (const int32_t position : positions)
    if (position < 0 || position >= rope.dim(0))
      fail(ErrorCode::invalid_argument, "qk_norm_rope: position ", position, " is outside the table of ",
           rope.dim(0), " positions");
}

void check_page_copies(const KvLayer& cache, std::span<const int32_t> from, std::span<const int32_t> to) {
  CHECK(cache.k.rank() == 4 && cache.k.is_contiguous() && cache.v.is_contiguous() &&
            cache.v.shape() == cache.k.shape() && cache.v.dtype() == cache.k.dtype(),
        "copy_kv_pages: keys are ", name_of(cache.k.dtype()), " ", cache.k.shape(), ", values ",
        name_of(cache.v.dtype()), " ", cache.v.shape(),
        ", expected both dense [pages, kv_heads, page_size, head_dim]");
  CHECK(from.size() == to.size(), "copy_kv_pages: ", from.size(), " pages to copy, ", to.size(),
        " places for them");
  for (const std::span<const int32_t> pages : {from, to})
    for (const int32_t page : pages)
      CHECK(0 <= page && page < cache.k.dim(0), "copy_kv_pages: page ", page, " of ", cache.k.dim(0));
  std::vector<int32_t> written(to.begin(), to.end());
  std::sort(written.begin(), written.end());
  const auto twice = std::adjacent_find(written.begin(), written.end());
  CHECK(twice == written.end(), "copy_kv_pages: page ", *twice, " is written twice");
  for (const int32_t page : from)
    CHECK(!std::binary_search(written.begin(), written.end(), page), "copy_kv_pages: page ", page,
          " is read and written");
}

void store_head(const VectorKernels& kernels, const float* from, TensorView cache, int64_t slot) {
  const int64_t dim = cache.dim(3);
  if (cache.dtype() == DType::bf16)
    kernels.round_bf16(from, cache.as<Bf16>() + slot * dim, dim);
  else
    std::memcpy(cache.as<float>() + slot * dim, from, static_cast<size_t>(dim) * sizeof(float));
}

}  // namespace

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
                  std::span<const int32_t> positions) {
  check_rope(qkv, layout, norm, rope, positions);
  if (qkv.dim(0) == 0) return;
  if (ctx.device.kind == DeviceKind::cuda) return cuda::qk_norm_rope(ctx, qkv, layout, norm, rope, positions);
  const VectorKernels& kernels = vector_kernels();
  const int64_t dim = layout.head_dim;
  const auto turn = [&](float* head, TensorView weight, int32_t position) {
    if (!weight.empty()) kernels.rms_norm(head, weight.as<float>(), norm.eps, head, dim);
    kernels.rotate_pairs(rope.row<float>(position), head, dim);
  };
  ctx.team->parallel_for(qkv.dim(0), cpu::rows_per_task(qkv.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* head = qkv.row<float>(row);
      const int32_t position = positions[static_cast<size_t>(row)];
      for (int64_t h = 0; h < layout.heads; ++h, head += dim) turn(head, norm.q, position);
      for (int64_t h = 0; h < layout.kv_heads; ++h, head += dim) turn(head, norm.k, position);
    }
  });
}

void append_kv(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
               const KvLayer& cache) {
  check_plan("append_kv", qkv, layout, plan, cache);
  if (qkv.dim(0) == 0) return;
  if (ctx.device.kind == DeviceKind::cuda) return cuda::append_kv(ctx, qkv, layout, plan, cache);
  const VectorKernels& kernels = vector_kernels();
  const std::span<const int32_t> offsets = plan.rows.offsets;
  const int64_t dim = layout.head_dim, kv_width = layout.kv_heads * dim;
  ctx.team->parallel_for(qkv.dim(0), cpu::rows_per_task(2 * kv_width), [&](int64_t begin, int64_t end, int) {
    int64_t sequence = std::upper_bound(offsets.begin(), offsets.end(), begin) - offsets.begin() - 1;
    for (int64_t row = begin; row < end; ++row) {
      while (row >= offsets[static_cast<size_t>(sequence) + 1]) ++sequence;
      const int64_t position = plan.positions[static_cast<size_t>(row)];
      const int64_t page = plan.page_table[static_cast<size_t>(sequence * plan.pages_per_sequence +
                                                               position / plan.page_size)];
      CHECK(0 <= page && page < cache.k.dim(0), "append_kv: page ", page, " of ", cache.k.dim(0));
      const float* k = qkv.row<float>(row) + layout.heads * dim;
      for (int64_t head = 0; head < layout.kv_heads; ++head) {
        const int64_t slot = (page * layout.kv_heads + head) * plan.page_size + position % plan.page_size;
        store_head(kernels, k + head * dim, cache.k, slot);
        store_head(kernels, k + kv_width + head * dim, cache.v, slot);
      }
    }
  });
}

void copy_kv_pages(Context& ctx, const KvLayer& cache, std::span<const int32_t> from,
                   std::span<const int32_t> to) {
  check_page_copies(cache, from, to);
  if (from.empty()) return;
  if (ctx.device.kind == DeviceKind::cuda) return cuda::copy_kv_pages(ctx, cache, from, to);
  // One head of one page at a time, so that several workers share even a single page.
  const int64_t heads = cache.k.dim(1), width = cache.k.dim(2) * cache.k.dim(3);
  const int64_t bytes = width * size_of(cache.k.dtype());
  const auto blocks = static_cast<int64_t>(from.size()) * heads;
  ctx.team->parallel_for(blocks, cpu::rows_per_task(2 * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      const auto pair = static_cast<size_t>(block / heads);
      for (const TensorView& side : {cache.k, cache.v}) {
        std::byte* const data = static_cast<std::byte*>(side.data());
        std::memcpy(data + (to[pair] * heads + block % heads) * bytes,
                    data + (from[pair] * heads + block % heads) * bytes, static_cast<size_t>(bytes));
      }
    }
  });
}

void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out) {
  check_plan("paged_attention", qkv, layout, plan, cache);
  CHECK(window >= 0, "paged_attention: window ", window);
  CHECK(out.dtype() == DType::f32 && out.shape() == (Shape{qkv.dim(0), layout.heads * layout.head_dim}),
        "paged_attention: out is ", name_of(out.dtype()), " ", out.shape(), ", expected F32 [", qkv.dim(0),
        ", ", layout.heads * layout.head_dim, "]");
  if (qkv.dim(0) == 0) return;
  if (ctx.device.kind == DeviceKind::cuda)
    return cuda::paged_attention(ctx, qkv, layout, plan, cache, window, out);
  cpu::paged_attention(ctx, qkv, layout, plan, cache, window, out);
}

}  // namespace shoal::ops
