// Attention of every row to every row of its utterance.
#pragma once

#include "ops/context.h"
#include "ops/segments.h"

namespace shoal::ops {

// out[row] = softmax(q . K / sqrt(head_dim)) V over all rows of the row's own segment, head by head. qkv: f32
// [total_rows, 3 * heads * head_dim]: all queries, all keys, all values; its gaps are never read. out: f32,
// or the dtype that the next product reads (product_input, linear.h): [total_rows, heads * head_dim]; its
// gaps become zeros. The same for a segment in every batch, bit for bit.
void self_attention(Context& ctx, TensorView qkv, int64_t heads, const Segments& segments, TensorView out);

}  // namespace shoal::ops
