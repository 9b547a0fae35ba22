// Causal convolutions over channels-last rows, with the state that makes streaming exact.
#pragma once

#include <span>

#include "ops/context.h"
#include "ops/linear.h"
#include "ops/packed_matrix.h"

namespace shoal::ops {

// Input of a causal convolution: new rows of every sequence, and what each sequence fed in before.
struct ConvInput {
  TensorView x;  // f32 [rows, channels], contiguous
  RaggedRows rows;
  // One per sequence: f32 [(taps - 1) * dilation, channels], the last inputs (after the snake), zeros at the
  // start. Read, then replaced by the newest inputs. May be empty views when the convolution looks back at
  // nothing.
  std::span<const TensorView> history;
  TensorView snake_alpha;  // f32 [channels]: x passes through snake first; empty: it does not
};

// y[t] = epilogue(bias + sum_j w[tap j] . in[t - (taps - 1 - j) * dilation]) for stride 1 (strided and
// transposed kernels are re-laid at load: packed_matrix.h).   y: f32 [rows, outputs], may be the residual
// stream (accumulate); not x.
void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue = {});

// Per-channel kernel (groups = channels), stride 1, dilation 1.
// weight: f32 [taps, channels] (transposed at load), bias: f32 [channels], y: f32 [rows, channels].
void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias, TensorView y);

// y = x + sin^2(alpha x) / (alpha + 1e-9), per channel (spec dac 2.4).  x, y: f32 [rows, channels]; y may be
// x.
void snake(Context& ctx, TensorView x, TensorView alpha, TensorView y);

}  // namespace shoal::ops
