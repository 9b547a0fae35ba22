// CPU bodies of the vector ops whose work needs more than a loop over rows. Operands are checked by the
// caller.
#pragma once

#include "ops/attention.h"
#include "ops/draw.h"
#include "ops/sample.h"
#include "ops/segment_norm.h"

namespace shoal::ops::cpu {

void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out);
void sample(Context& ctx, TensorView logits, std::span<const SampleRow> rows, std::span<int32_t> tokens);
void draw_tokens(Context& ctx, TensorView logits, const DrawTable& table, const TokenHead& head,
                 TensorView frames);
void draw_codes(Context& ctx, TensorView logits, const DrawTable& table, int64_t codebook, TensorView frames);
void adain(Context& ctx, TensorView x, const Segments& segments, TensorView style, float eps,
           const SegmentActivation& activation, TensorView y);

// Rows of `width` floats that make a task worth handing to another thread (some microseconds).
constexpr int64_t rows_per_task(int64_t width) { return width >= 4096 ? 1 : 4096 / (width < 1 ? 1 : width); }

}  // namespace shoal::ops::cpu
