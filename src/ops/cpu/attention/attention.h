// Attention on the CPU. Operands are checked by the caller.
#pragma once

#include "ops/attention.h"
#include "ops/segments.h"

namespace shoal::ops::cpu {

void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out);
void self_attention(Context& ctx, TensorView qkv, int64_t heads, const Segments& segments, TensorView out);

}  // namespace shoal::ops::cpu
