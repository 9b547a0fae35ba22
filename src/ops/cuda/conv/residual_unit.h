// Residual units of a codec in one kernel (residual_unit.cuh).
#pragma once

#include "ops/conv1d.h"

namespace shoal::ops::cuda {

// Whether there is a kernel for it: 64, 96, 128, 192, 256 or 384 channels, 16 bits, sm_90a.
bool has_unit_kernel(const Context& ctx, const ResidualConvs& convs);
// y = x + conv1(snake(conv7(snake(x)))), and the history is replaced.  y: f32 [rows, channels], not x.
void residual_unit_at_once(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                           const ResidualConvs& convs, TensorView y);

}  // namespace shoal::ops::cuda
