// The CPU twins of the ops: same contracts as the ops' own headers, operands checked by the caller.
// cuda_backend.h is the same for a GPU.
#pragma once

#include "ops/attention.h"
#include "ops/conv1d.h"
#include "ops/draw.h"
#include "ops/embedding.h"
#include "ops/harmonic_source.h"
#include "ops/linear.h"
#include "ops/lstm.h"
#include "ops/norm.h"
#include "ops/sample.h"
#include "ops/segment_norm.h"
#include "ops/self_attention.h"
#include "ops/short_stft.h"
#include "ops/vector_quantise.h"
#include "ops/weight_source.h"

namespace shoal::ops::cpu {

// gemm
// Of what pack() gives.
Shape packed_shape(const PackRequest& request);
DType packed_dtype(const PackRequest& request);
// The panels of matrix_layout.h; the bias stays apart.
// scales: f32 [panels, 16], written for i8.
Tensor pack(Context& ctx, const PackRequest& request, TensorView scales);
void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue);
void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y);
void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue);
void valid_conv1d(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation, TensorView y,
                  const Epilogue& epilogue);
void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias, TensorView y);

// rows
void snake(Context& ctx, TensorView x, TensorView alpha, TensorView y);
void rms_norm(Context& ctx, TensorView x, TensorView weight, float eps, TensorView y);
void layer_norm(Context& ctx, TensorView x, TensorView weight, TensorView bias, float eps, TensorView y);
// Throws Error(internal) for a row of the tables that is not there, before anything is written.
void layer_norm_by_row(Context& ctx, TensorView x, TensorView which, TensorView weights, TensorView biases,
                       float eps, TensorView y);
// These three throw Error(invalid_argument) for an id outside of its table, before anything is written.
void gather_rows(Context& ctx, TensorView table, TensorView ids, TensorView y);
void gather_sum(Context& ctx, TensorView table, TensorView ids, TensorView y);
void embed_columns(Context& ctx, const ColumnEmbedding& embedding, TensorView columns, TensorView y);
void nearest_code(Context& ctx, TensorView x, TensorView directions, TensorView codes);

// attention
void qk_norm_rope(Context& ctx, TensorView qkv, const HeadLayout& layout, const QkNorm& norm, TensorView rope,
                  const BatchPlan& plan);
void append_kv(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
               const KvLayer& cache);
void copy_kv_pages(Context& ctx, std::span<const KvLayer> layers, std::span<const int32_t> from,
                   std::span<const int32_t> to);
void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out);
void self_attention(Context& ctx, TensorView qkv, int64_t heads, const Segments& segments, TensorView out);

// sampling
SamplingDistribution sampling_distribution(std::span<const float> logits, const SampleRow& row);
void sample(Context& ctx, TensorView logits, std::span<const SampleRow> rows, std::span<int32_t> tokens);
void draw_tokens(Context& ctx, TensorView logits, const DrawTable& table, const TokenHead& head,
                 TensorView frames);
void draw_codes(Context& ctx, TensorView logits, const DrawTable& table, int64_t codebook, TensorView frames);

// sequence
// Of what pack_recurrent gives.
Shape recurrent_shape(int64_t hidden);
// The recurrent weights of both directions as LstmStep reads them.
Tensor pack_recurrent(const LstmDirection& forward, const LstmDirection& backward);
// products: f32 [total_rows, 2 * 4 * hidden], inputs times weights; scratch afterwards.
void run_lstm(Context& ctx, TensorView products, const Segments& segments, const PackedLstm& lstm,
              TensorView y);
void adain(Context& ctx, TensorView x, const Segments& segments, TensorView style, float eps,
           const SegmentActivation& activation, TensorView y);
void segment_sum(Context& ctx, std::span<const TensorView> x, const Segments& segments, float factor,
                 float slope, TensorView y);
void mirror_first_rows(const Segments& segments, TensorView x);
void double_rows(Context& ctx, TensorView x, const Segments& segments, TensorView weight, TensorView bias,
                 TensorView y);
void harmonic_source(Context& ctx, const HarmonicSource& source, TensorView f0, const Segments& segments,
                     const SourceNoise& noise, TensorView out);
void short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments, TensorView y);
void inverse_short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments,
                        TensorView y);

}  // namespace shoal::ops::cpu
