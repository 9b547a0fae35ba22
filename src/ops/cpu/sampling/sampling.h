// Sampling on the CPU. Operands are checked by the caller.
#pragma once

#include "ops/draw.h"
#include "ops/sample.h"

namespace shoal::ops::cpu {

void sample(Context& ctx, TensorView logits, std::span<const SampleRow> rows, std::span<int32_t> tokens);
void draw_tokens(Context& ctx, TensorView logits, const DrawTable& table, const TokenHead& head,
                 TensorView frames);
void draw_codes(Context& ctx, TensorView logits, const DrawTable& table, int64_t codebook, TensorView frames);

}  // namespace shoal::ops::cpu
