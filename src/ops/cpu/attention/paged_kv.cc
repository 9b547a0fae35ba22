// What fills and copies KV pages, and turns queries and keys before.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/f16.h"
#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/tasks.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

// The largest magnitude; infinity if an element is not a number.
float largest_magnitude(const float* x, int64_t n) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = std::isnan(x[i]) ? std::numeric_limits<float>::infinity() : std::abs(x[i]);
    largest = std::max(largest, magnitude);
  }
  return largest;
}

// Integers, and their scale (attention.h). A head that is not finite gets a scale that is not finite either.
void store_integers(const float* from, int8_t* to, F16* scale, int64_t dim) {
  *scale = float_to_f16(largest_magnitude(from, dim) * (1.0f / 127.0f));
  const float step = f16_to_float(*scale);
  if (step == 0 || !std::isfinite(step)) return static_cast<void>(std::fill_n(to, dim, int8_t{0}));
  const float inverse = 1.0f / step;
  for (int64_t i = 0; i < dim; ++i)
    to[i] = static_cast<int8_t>(std::nearbyint(std::clamp(from[i] * inverse, -127.0f, 127.0f)));
}

void store_head(const VectorKernels& kernels, const float* from, TensorView cache, TensorView scales,
                int64_t slot) {
  const int64_t dim = cache.dim(3);
  if (cache.dtype() == DType::i8)
    store_integers(from, cache.as<int8_t>() + slot * dim, scales.as<F16>() + slot, dim);
  else if (cache.dtype() == DType::bf16)
    kernels.round_bf16(from, cache.as<Bf16>() + slot * dim, dim);
  else
    std::memcpy(cache.as<float>() + slot * dim, from, static_cast<size_t>(dim) * sizeof(float));
}

// Head number `from` of a layer's pages over head number `to`.
void copy_head(TensorView side, int64_t from, int64_t to) {
  const int64_t bytes = side.elements() / (side.dim(0) * side.dim(1)) * size_of(side.dtype());
  std::byte* const data = static_cast<std::byte*>(side.data());
  std::memcpy(data + to * bytes, data + from * bytes, static_cast<size_t>(bytes));
}

}  // namespace

void qk_norm_rope(Context& ctx, TensorView qkv, const HeadLayout& layout, const QkNorm& norm, TensorView rope,
                  const BatchPlan& plan) {
  const VectorKernels& kernels = vector_kernels();
  const int64_t dim = layout.head_dim;
  const auto turn = [&](float* head, TensorView weight, int32_t position) {
    if (!weight.empty()) kernels.rms_norm(head, weight.as<float>(), norm.eps, head, dim);
    kernels.rotate_pairs(rope.row<float>(position), head, dim);
  };
  ctx.team->parallel_for(qkv.dim(0), rows_per_task(qkv.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* head = qkv.row<float>(row);
      const int32_t position = plan.positions[static_cast<size_t>(row)];
      for (int64_t h = 0; h < layout.heads; ++h, head += dim) turn(head, norm.q, position);
      for (int64_t h = 0; h < layout.kv_heads; ++h, head += dim) turn(head, norm.k, position);
    }
  });
}

void append_kv(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
               const KvLayer& cache) {
  const VectorKernels& kernels = vector_kernels();
  const std::span<const int32_t> offsets = plan.rows.offsets;
  const int64_t dim = layout.head_dim, kv_width = layout.kv_heads * dim;
  ctx.team->parallel_for(qkv.dim(0), rows_per_task(2 * kv_width), [&](int64_t begin, int64_t end, int) {
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
        store_head(kernels, k + head * dim, cache.k, cache.k_scales, slot);
        store_head(kernels, k + kv_width + head * dim, cache.v, cache.v_scales, slot);
      }
    }
  });
}

void copy_kv_pages(Context& ctx, std::span<const KvLayer> layers, std::span<const int32_t> from,
                   std::span<const int32_t> to) {
  // One head of one page at a time, so that several workers share even a single page.
  const TensorView& shape = layers.front().k;
  const int64_t heads = shape.dim(1), width = shape.dim(2) * shape.dim(3);
  const auto of_layer = static_cast<int64_t>(from.size()) * heads;
  const auto blocks = static_cast<int64_t>(layers.size()) * of_layer;
  ctx.team->parallel_for(blocks, rows_per_task(2 * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      const KvLayer& cache = layers[static_cast<size_t>(block / of_layer)];
      const auto pair = static_cast<size_t>(block % of_layer / heads);
      for (const TensorView& side : {cache.k, cache.v, cache.k_scales, cache.v_scales})
        if (!side.empty())
          copy_head(side, from[pair] * heads + block % heads, to[pair] * heads + block % heads);
    }
  });
}

}  // namespace shoal::ops::cpu
