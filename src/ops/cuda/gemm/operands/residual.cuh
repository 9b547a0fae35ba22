// The norm of a residual stream whose sums wait.
#pragma once

#include "ops/residual.h"

namespace shoal::ops::cuda {

// x += the sums, and y = its norm.  x: f32 [rows, dim], rows aligned to 16 bytes; y: bf16 or f16, dense.
void norm_settled(Context& ctx, TensorView x, TensorView sums, const RmsNorm& norm, TensorView y);

}  // namespace shoal::ops::cuda
