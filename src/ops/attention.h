// Attention over paged keys and values, and what comes before it: head norms, rotary positions, the append.
#pragma once

#include "ops/context.h"
#include "ops/residual.h"

namespace shoal::ops {

// A row of qkv holds all query heads, then all key heads, then all value heads.
struct HeadLayout {
  int64_t heads = 0;  // query heads, a multiple of kv_heads
  int64_t kv_heads = 0;
  int64_t head_dim = 0;  // even
  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

// cos, sin of position * base^(-2j/head_dim), computed in f32 and rounded to bf16 as the checkpoints define
// them, whatever the model's precision (dual_ar/MODEL.md 2).   -> f32 [positions, head_dim / 2, 2]
Tensor make_rope_table(int64_t positions, int64_t head_dim, double base);

// Query/key norms of one layer: f32 [head_dim] each, or empty views for none.
struct QkNorm {
  TensorView q, k;
  float eps = 0;
};

// Whether attention on the device can read keys and values of this dtype. I8 are integers with an f16 scale
// for each token and head: x = integer * scale, the scale the head's largest magnitude / 127 rounded to f16.
// A byte of a page is the integer on a CPU, the integer + 128 on a GPU.
bool can_attend(Device device, int64_t head_dim, DType cache);

// What a GPU's tensor cores round queries to, to multiply them with keys of such pages.
inline DType query_dtype(DType cache) { return cache == DType::i8 ? DType::f16 : cache; }

// In place on the q and k heads of qkv (f32 [rows, qkv_width]): RMSNorm per head when given, then rotation of
// interleaved pairs (2j, 2j+1) by each row's position. rope: from make_rope_table; a position beyond it is an
// error.
void qk_norm_rope(Context& ctx, TensorView qkv, const HeadLayout& layout, const QkNorm& norm, TensorView rope,
                  const BatchPlan& plan);

// Writes the k and v heads of qkv to the page slots of each row's position (rounded to the cache's dtype).
void append_kv(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
               const KvLayer& cache);

// Copies whole pages in every layer, keys, values and their scales: page from[i] over page to[i]. Any dtype;
// all layers have one shape. No page is written twice, and none is both read and written, so that the order
// of the copies does not matter.
void copy_kv_pages(Context& ctx, std::span<const KvLayer> layers, std::span<const int32_t> from,
                   std::span<const int32_t> to);

// out[row] = softmax(q . K / sqrt(head_dim)) V over the positions max(0, p - window + 1) .. p of the row's
// own sequence (window 0: all), which append_kv has written. Query head h reads kv head h / (heads /
// kv_heads). out: f32 [rows, heads * head_dim]. The order of summation depends only on the row's position and
// the window: not on the other rows of the batch or on the positions of the pages.
void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out);

// The constant parameters of a layer's attention.
struct AttentionPlan {
  HeadLayout layout;
  TensorView rope;     // make_rope_table, in the device's memory
  int64_t window = 0;  // 0: all
};

// qk_norm_rope, append_kv and paged_attention in one: what the models call. qkv may be changed. The last
// kernel before attend must write neither the plan's tables nor keys and values of positions before a
// sequence's first row: a GPU reads them while that kernel still runs. (Calls for pieces of one qkv may
// follow each other where a sequence goes on: a piece of several rows of a sequence ends with a kernel that
// writes none.) out: f32, or the dtype that the next product reads (product_input, linear.h): [rows, heads *
// head_dim].
void attend(Context& ctx, TensorView qkv, const AttentionPlan& attention, const QkNorm& norm,
            const BatchPlan& plan, const KvLayer& cache, TensorView out);

// norm_linear of the stream's rows by `weight`, [qkv_width, dim], and attend: the same values. On a GPU one
// kernel may do what comes before attention, and write no qkv of prompts. No sequence continues another of
// the same plan.
void norm_attend(Context& ctx, Residual& x, const RmsNorm& norm, const PackedMatrix& weight,
                 const AttentionPlan& attention, const QkNorm& head_norms, const BatchPlan& plan,
                 const KvLayer& cache, TensorView out);

}  // namespace shoal::ops
