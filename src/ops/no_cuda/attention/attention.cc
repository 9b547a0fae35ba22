#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void qk_norm_rope(Context&, TensorView, const HeadLayout&, const QkNorm&, TensorView, const BatchPlan&) {
  unavailable("qk_norm_rope");
}
void append_kv(Context&, TensorView, const HeadLayout&, const BatchPlan&, const KvLayer&) {
  unavailable("append_kv");
}
void copy_kv_pages(Context&, std::span<const KvLayer>, std::span<const int32_t>, std::span<const int32_t>) {
  unavailable("copy_kv_pages");
}
void paged_attention(Context&, TensorView, const HeadLayout&, const BatchPlan&, const KvLayer&, int64_t,
                     TensorView) {
  unavailable("paged_attention");
}
void attend(Context&, TensorView, const AttentionPlan&, const QkNorm&, const BatchPlan&, const KvLayer&,
            TensorView) {
  unavailable("attend");
}

}  // namespace shoal::ops::cuda
