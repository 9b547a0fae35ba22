// The CUDA twins of every op: same contracts, operands in device memory. A CPU-only build links no_cuda/,
// whose functions throw Error(unavailable).
#pragma once

#include "ops/attention.h"
#include "ops/conv1d.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/sample.h"
#include "ops/vector_quantise.h"
#include "ops/weight_source.h"

namespace shoal::ops::cuda {

// Matrices (no_cuda/matrix.cc).
Tensor pack(Context& ctx, const PackRequest& request);
void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue);
void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y);
void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue);
void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias, TensorView y);

// Vectors (no_cuda/vector.cc).
void snake(Context& ctx, TensorView x, TensorView alpha, TensorView y);
void rms_norm(Context& ctx, TensorView x, TensorView weight, float eps, TensorView y);
void layer_norm(Context& ctx, TensorView x, TensorView weight, TensorView bias, float eps, TensorView y);
void gather_rows(Context& ctx, TensorView table, std::span<const int32_t> ids, TensorView y);
void gather_sum(Context& ctx, TensorView table, std::span<const int32_t> ids, int64_t per_row, TensorView y);
void embed_columns(Context& ctx, const ColumnEmbedding& embedding, std::span<const int32_t> columns,
                   TensorView y);
void qk_norm_rope(Context& ctx, TensorView qkv, const HeadLayout& layout, const QkNorm& norm, TensorView rope,
                  std::span<const int32_t> positions);
void append_kv(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
               const KvLayer& cache);
void copy_kv_pages(Context& ctx, const KvLayer& cache, std::span<const int32_t> from,
                   std::span<const int32_t> to);
void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out);
void sample(Context& ctx, TensorView logits, std::span<const SampleRow> rows, std::span<int32_t> tokens);
void nearest_code(Context& ctx, TensorView x, TensorView directions, std::span<int32_t> codes);

}  // namespace shoal::ops::cuda
