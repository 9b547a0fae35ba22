// Residual units of a codec in one kernel (residual_unit.cuh).
#pragma once

#include "ops/conv1d.h"

namespace shoal::ops::cuda {

// Whether there is a kernel for it: 64, 96, 128, 192, 256 or 384 channels, 16 bits, sm_90a.
bool has_unit_kernel(const Context& ctx, const ResidualConvs& convs);
// Whether that kernel makes rows ready: not of 96 channels, whose reader in a codec takes f32 rows.
bool unit_kernel_makes_ready(const ResidualConvs& convs);
// y = x + conv1(snake(conv7(snake(x)))), and the history is replaced.  y: f32 [rows, channels], not x.
void residual_unit_at_once(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                           const ResidualConvs& convs, TensorView y);
// The same into rows that are ready for the reader (residual_unit_for).
void ready_unit_at_once(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                        const ResidualConvs& convs, const ConvReader& reader, TensorView y);

}  // namespace shoal::ops::cuda
