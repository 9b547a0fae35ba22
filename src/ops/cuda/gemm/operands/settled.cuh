// The norm of a residual stream whose sums wait.
#pragma once

#include "ops/residual.h"

namespace shoal::ops::cuda {

// Shared memory of a block that settles and norms a row.
inline int64_t settled_bytes(int64_t depth) { return 2 * depth * size_of(DType::f32); }

// x += the sums, and y = its norm.  x: f32 [rows, dim], rows aligned to 16 bytes; y: bf16 or f16, dense.
void norm_settled(Context& ctx, TensorView x, TensorView sums, const RmsNorm& norm, TensorView y);

}  // namespace shoal::ops::cuda
