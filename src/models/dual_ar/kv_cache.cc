#include "models/dual_ar/kv_cache.h"

#include "base/error.h"
#include "ops/attention.h"

namespace shoal::dual_ar {

KvCache::KvCache(const Config& config, int64_t pages, int64_t page_size, DType dtype, Device device,
                 bool with_memory)
    : pages_(pages), page_size_(page_size), dtype_(dtype) {
  CHECK(pages >= 1 && page_size >= 1, pages, " pages of ", page_size);
  CHECK(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::i8, "dtype is ",
        name_of(dtype));
  const Shape heads{pages, config.slow.kv_heads, page_size},
      shape{pages, config.slow.kv_heads, page_size, config.slow.head_dim};
  const auto make = [&](DType of, const Shape& each) {
    return with_memory ? Tensor(of, each, device) : Tensor::sized(of, each, device);
  };
  for (int64_t layer = 0; layer < config.slow_layers; ++layer) {
    keys_.push_back(make(dtype, shape));
    values_.push_back(make(dtype, shape));
    if (dtype != DType::i8) continue;
    key_scales_.push_back(make(DType::f16, heads));
    value_scales_.push_back(make(DType::f16, heads));
  }
}

ops::KvLayer KvCache::layer(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  if (key_scales_.empty()) return {keys_[i], values_[i]};
  return {keys_[i], values_[i], key_scales_[i], value_scales_[i]};
}

void KvCache::copy_page(ops::Context& ctx, int64_t from, int64_t to) {
  CHECK(0 <= from && from < pages_ && 0 <= to && to < pages_, "page ", from, " over page ", to, " of ",
        pages_);
  const auto source = static_cast<int32_t>(from), target = static_cast<int32_t>(to);
  std::vector<ops::KvLayer> layers;
  for (size_t i = 0; i < keys_.size(); ++i) layers.push_back(layer(static_cast<int64_t>(i)));
  ops::copy_kv_pages(ctx, layers, {&source, 1}, {&target, 1});
}

int64_t KvCache::bytes() const {
  int64_t total = 0;
  for (const auto* tensors : {&keys_, &values_, &key_scales_, &value_scales_})
    for (const Tensor& tensor : *tensors) total += tensor.bytes();
  return total;
}

int64_t KvCache::bytes_per_token(const Config& config, DType dtype) {
  const int64_t scale = dtype == DType::i8 ? size_of(DType::f16) : 0;
  return config.slow_layers * 2 * config.slow.kv_heads * (config.slow.head_dim * size_of(dtype) + scale);
}

}  // namespace shoal::dual_ar
