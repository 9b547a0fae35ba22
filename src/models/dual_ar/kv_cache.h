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
  // pages >= 1 of page_size >= 1 tokens; dtype f32, bf16 or f16. Throws Error(resource_exhausted).
  KvCache(const Config& config, int64_t pages, int64_t page_size, DType dtype, Device device = {});

  ops::KvLayer layer(int64_t index) const;
  // Page `from` over page `to`, in every layer.
  void copy_page(ops::Context& ctx, int64_t from, int64_t to);

  int64_t pages() const { return pages_; }
  int64_t page_size() const { return page_size_; }
  DType dtype() const { return dtype_; }
  int64_t bytes() const;
  // Of all layers: S1-mini in bf16 takes 114,688.
  static int64_t bytes_per_token(const Config& config, DType dtype);

 private:
  int64_t pages_ = 0, page_size_ = 0;
  DType dtype_ = DType::f32;
  std::vector<Tensor> keys_, values_;  // per layer [pages, kv_heads, page_size, head_dim]
};

}  // namespace shoal::dual_ar
