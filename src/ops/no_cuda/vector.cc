#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

[[noreturn]] void unavailable(const char* op) {
  fail(ErrorCode::unavailable, op, ": this build has no CUDA backend");
}

}  // namespace

void snake(Context&, TensorView, TensorView, TensorView) { unavailable("snake"); }
void rms_norm(Context&, TensorView, TensorView, float, TensorView) { unavailable("rms_norm"); }
void layer_norm(Context&, TensorView, TensorView, TensorView, float, TensorView) {
  unavailable("layer_norm");
}
void gather_rows(Context&, TensorView, std::span<const int32_t>, TensorView) { unavailable("gather_rows"); }
void gather_sum(Context&, TensorView, std::span<const int32_t>, int64_t, TensorView) {
  unavailable("gather_sum");
}
void embed_columns(Context&, const ColumnEmbedding&, std::span<const int32_t>, TensorView) {
  unavailable("embed_columns");
}
void qk_norm_rope(Context&, TensorView, const HeadLayout&, const QkNorm&, TensorView,
                  std::span<const int32_t>) {
  unavailable("qk_norm_rope");
}
void append_kv(Context&, TensorView, const HeadLayout&, const BatchPlan&, const KvLayer&) {
  unavailable("append_kv");
}
void copy_kv_pages(Context&, const KvLayer&, std::span<const int32_t>, std::span<const int32_t>) {
  unavailable("copy_kv_pages");
}
void paged_attention(Context&, TensorView, const HeadLayout&, const BatchPlan&, const KvLayer&, int64_t,
                     TensorView) {
  unavailable("paged_attention");
}
void sample(Context&, TensorView, std::span<const SampleRow>, std::span<int32_t>) { unavailable("sample"); }
void nearest_code(Context&, TensorView, TensorView, std::span<int32_t>) { unavailable("nearest_code"); }

}  // namespace shoal::ops::cuda
