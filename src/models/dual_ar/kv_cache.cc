#include "models/dual_ar/kv_cache.h"

#include "base/error.h"
#include "ops/attention.h"

namespace shoal::dual_ar {

KvCache::KvCache(const Config& config, int64_t pages, int64_t page_size, DType dtype, Device device)
    : pages_(pages), page_size_(page_size), dtype_(dtype) {
  CHECK(pages >= 1 && page_size >= 1, pages, " pages of ", page_size);
  CHECK(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16, "dtype is ", name_of(dtype));
  const Shape shape{pages, config.slow.kv_heads, page_size, config.slow.head_dim};
  for (int64_t layer = 0; layer < config.slow_layers; ++layer) {
    keys_.emplace_back(dtype, shape, device);
    values_.emplace_back(dtype, shape, device);
  }
}

ops::KvLayer KvCache::layer(int64_t index) const {
  return {keys_[static_cast<size_t>(index)], values_[static_cast<size_t>(index)]};
}

void KvCache::copy_page(ops::Context& ctx, int64_t from, int64_t to) {
  CHECK(0 <= from && from < pages_ && 0 <= to && to < pages_, "page ", from, " over page ", to, " of ",
        pages_);
  const auto source = static_cast<int32_t>(from), target = static_cast<int32_t>(to);
  for (size_t i = 0; i < keys_.size(); ++i)
    ops::copy_kv_pages(ctx, layer(static_cast<int64_t>(i)), {&source, 1}, {&target, 1});
}

int64_t KvCache::bytes() const {
  int64_t total = 0;
  for (const auto* tensors : {&keys_, &values_})
    for (const Tensor& tensor : *tensors) total += tensor.bytes();
  return total;
}

int64_t KvCache::bytes_per_token(const Config& config, DType dtype) {
  return config.slow_layers * 2 * config.slow.kv_heads * config.slow.head_dim * size_of(dtype);
}

}  // namespace shoal::dual_ar
