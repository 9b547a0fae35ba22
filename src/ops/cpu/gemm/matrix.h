// The CPU versions of the matrix ops; shapes have been checked by the callers in ops/.
#pragma once

#include "ops/conv1d.h"
#include "ops/linear.h"

namespace shoal::ops::cpu {

void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue);
void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y);
void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue);
void valid_conv1d(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation, TensorView y,
                  const Epilogue& epilogue);
void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias, TensorView y);

}  // namespace shoal::ops::cpu
