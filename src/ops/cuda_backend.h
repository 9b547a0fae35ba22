// The CUDA twins of every op: same contracts, operands in device memory. A CPU-only build links no_cuda/,
// whose functions throw Error(unavailable). A file of cuda/ replaces its namesake there.
#pragma once

#include "ops/attention.h"
#include "ops/conv1d.h"
#include "ops/device_speed.h"
#include "ops/draw.h"
#include "ops/embedding.h"
#include "ops/harmonic_source.h"
#include "ops/linear.h"
#include "ops/lstm.h"
#include "ops/norm.h"
#include "ops/residual.h"
#include "ops/segment_norm.h"
#include "ops/self_attention.h"
#include "ops/short_stft.h"
#include "ops/snake_block.h"
#include "ops/step_graph.h"
#include "ops/stream.h"
#include "ops/transfer.h"
#include "ops/vector_quantise.h"
#include "ops/weight_source.h"

namespace shoal::ops::cuda {

// pack
// scales: of i8 weights, f32 [rows of tiles, 8], in the memory of the device; of others an empty view.
Tensor pack(Context& ctx, const PackRequest& request, TensorView scales);

// linear
void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue);
void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y);
void norm_linear(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& weight, TensorView y,
                 TensorView sums = {});
void norm_swiglu(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& gate_up, TensorView y,
                 TensorView sums = {});

// residual
bool can_add_later(const Context& ctx);
// The sums of in weight^T, segment by segment. False: nothing is done, the product is better made at once.
bool linear_sums(Context& ctx, TensorView in, const PackedMatrix& weight, TensorView sums);
void add_sums(Context& ctx, TensorView sums, TensorView x);

// conv1d
void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue);
void valid_conv1d(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation, TensorView y,
                  const Epilogue& epilogue);
void residual_unit(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                   const ResidualConvs& convs, TensorView y);
bool residual_unit_is_apart(const Context& ctx, const ResidualConvs& convs, int64_t rows);
bool makes_ready(const Context& ctx, const ResidualConvs& convs, int64_t rows, const ConvReader& reader);
void residual_unit_for(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                       const ResidualConvs& convs, const ConvReader& reader, TensorView y);
void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias, TensorView y);

// rows
void snake(Context& ctx, TensorView x, TensorView alpha, TensorView y);
void rms_norm(Context& ctx, TensorView x, TensorView weight, float eps, TensorView y);
void layer_norm(Context& ctx, TensorView x, TensorView weight, TensorView bias, float eps, TensorView y);
void layer_norm_by_row(Context& ctx, TensorView x, TensorView which, TensorView weights, TensorView biases,
                       float eps, TensorView y);
void gather_rows(Context& ctx, TensorView table, TensorView ids, TensorView y);
void gather_sum(Context& ctx, TensorView table, TensorView ids, TensorView y);
void embed_columns(Context& ctx, const ColumnEmbedding& embedding, TensorView columns, TensorView y);
void nearest_code(Context& ctx, TensorView x, TensorView directions, TensorView codes);

// segment_norm
void adain(Context& ctx, TensorView x, const Segments& segments, TensorView style, float eps,
           const SegmentActivation& activation, TensorView y);
void segment_sum(Context& ctx, std::span<const TensorView> x, const Segments& segments, float factor,
                 float slope, TensorView y);
void mirror_first_rows(Context& ctx, const Segments& segments, TensorView x);
void double_rows(Context& ctx, TensorView x, const Segments& segments, TensorView weight, TensorView bias,
                 TensorView y);

// snake_block
// Whether there are kernels for all of the convolutions: 128 or 256 channels, 16 bits, (taps - 1) * dilation
// of 50 at most, sm_90a.
bool has_snake_block(const Context& ctx, std::span<const SnakeUnit> units);
void snake_block(Context& ctx, TensorView x, const Segments& segments, std::span<const SnakeUnit> units,
                 float eps, TensorView y);

// attention
void qk_norm_rope(Context& ctx, TensorView qkv, const HeadLayout& layout, const QkNorm& norm, TensorView rope,
                  const BatchPlan& plan);
void append_kv(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
               const KvLayer& cache);
void copy_kv_pages(Context& ctx, std::span<const KvLayer> layers, std::span<const int32_t> from,
                   std::span<const int32_t> to);
void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out);
void attend(Context& ctx, TensorView qkv, const AttentionPlan& attention, const QkNorm& norm,
            const BatchPlan& plan, const KvLayer& cache, TensorView out);
// Whether norm_attend is there, for so many rows to which nothing is to be added, and expected to gain.
bool has_norm_attend(Context& ctx, const PackedMatrix& weight, int64_t rows, const HeadLayout& layout,
                     const BatchPlan& plan, const KvLayer& cache);
// qkv: room for the product.
void norm_attend(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& weight, TensorView qkv,
                 const AttentionPlan& attention, const QkNorm& head_norms, const BatchPlan& plan,
                 const KvLayer& cache, TensorView out);

// lstm, self_attention, harmonic_source, short_stft
Tensor pack_recurrent(Context& ctx, const LstmDirection& forward, const LstmDirection& backward, DType dtype);
void bidirectional_lstm(Context& ctx, TensorView x, const Segments& segments, const PackedLstm& lstm,
                        TensorView y);
void self_attention(Context& ctx, TensorView qkv, int64_t heads, const Segments& segments, TensorView out);
void harmonic_source(Context& ctx, const HarmonicSource& source, TensorView f0, const Segments& segments,
                     const SourceNoise& noise, TensorView out);
void short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments, TensorView y);
void inverse_short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments,
                        TensorView y);

// draw
void draw_tokens(Context& ctx, TensorView logits, const DrawTable& table, const TokenHead& head,
                 TensorView frames);
void draw_codes(Context& ctx, TensorView logits, const DrawTable& table, int64_t codebook, TensorView frames);

// transfer
void upload(Context& ctx, const void* from, TensorView to);
void download(Context& ctx, TensorView from, void* to);
Mark mark(Context& ctx);
void download(Context& ctx, const Mark& mark, TensorView from, void* to);
// Between page-locked memory of the host and the device's, without waiting.
void copy_in_order(Context& ctx, TensorView from, TensorView to);
void fill_zero(Context& ctx, TensorView y);
void synchronize(Context& ctx);

// device_speed
DeviceSpeed measure_device_speed(Context& ctx);

}  // namespace shoal::ops::cuda
