// Pages of keys and values of the slow transformer, for every layer.
#pragma once

#include <cstdint>
#include <vector>

#include "models/dual_ar/config.h"
#include "ops/context.h"
#include "tensor/tensor.h"

namespace shoal::dual_ar {

// Memory only: which sequence owns which page is the caller's business. Page p of every layer belongs
// together. Not initialised: attention reads no position that was not written.
class KvCache {
 public:
  // pages >= 1 of page_size >= 1 tokens; dtype f32, bf16, f16 or i8 (with scales, ops/attention.h). Throws
  // Error(resource_exhausted).
  KvCache(const Config& config, int64_t pages, int64_t page_size, DType dtype, Device device = {})
      : KvCache(config, pages, page_size, dtype, device, /*with_memory=*/true) {}
  // Without memory, for plans.
  static KvCache sized(const Config& config, int64_t pages, int64_t page_size, DType dtype, Device device) {
    return KvCache(config, pages, page_size, dtype, device, /*with_memory=*/false);
  }

  ops::KvLayer layer(int64_t index) const;
  // Page `from` over page `to`, in every layer.
  void copy_page(ops::Context& ctx, int64_t from, int64_t to);

  int64_t pages() const { return pages_; }
  int64_t page_size() const { return page_size_; }
  DType dtype() const { return dtype_; }
  int64_t bytes() const;
  // Of all layers: S1-mini takes 114,688 in bf16, 58,240 in i8.
  static int64_t bytes_per_token(const Config& config, DType dtype);

 private:
  KvCache(const Config& config, int64_t pages, int64_t page_size, DType dtype, Device device,
          bool with_memory);

  int64_t pages_ = 0, page_size_ = 0;
  DType dtype_ = DType::f32;
  // Per layer [pages, kv_heads, page_size, head_dim], and of i8 [pages, kv_heads, page_size].
  std::vector<Tensor> keys_, values_, key_scales_, value_scales_;
};

}  // namespace shoal::dual_ar
