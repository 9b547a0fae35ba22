// Nearest codebook entries.
#pragma once

#include "ops/context.h"

namespace shoal::ops {

// codes[row] = argmax over entries of x[row] . entry / |x[row]| |entry| (cosine; the first entry on exact
// ties), dac/MODEL.md, Encoding 7. x: f32 [rows, code_dim], directions: f32 [entries, code_dim], already
// L2-normalised (norm floor 1e-12). codes: i32 [rows, n], of which the first column is written (a strided
// column).
void nearest_code(Context& ctx, TensorView x, TensorView directions, TensorView codes);

}  // namespace shoal::ops
