// Causal convolutions over channels-last rows, with the state that makes streaming exact.
#pragma once

#include <span>

#include "ops/context.h"
#include "ops/linear.h"
#include "ops/packed_matrix.h"

namespace shoal::ops {

// Where the sequences of a batch keep the last inputs of one convolution: sequence s in slot slots[s] of
// `pool`, from float `offset` on: f32 [(taps - 1) * dilation, channels], the last inputs (after the snake),
// zeros at the start. Read, then replaced by the newest inputs.
struct ConvHistory {
  TensorView pool;  // f32 [slots, floats of a slot]; empty if the convolution has no history
  int64_t offset = 0;
  std::span<const int32_t> slots;  // [sequences], all different
};

// The rows of a batch at some rate, for the host and for kernels.
struct ConvRows {
  RaggedRows rows;
  // What kernels read: sequence s owns rows [offsets[s] * rate, offsets[s + 1] * rate). i32 [sequences + 1]
  // and i32 [sequences]; empty on the CPU.
  TensorView offsets, slots;
  int64_t rate = 1;
};

// Input of a causal convolution: new rows of every sequence, and what each sequence fed in before.
struct ConvInput {
  TensorView x;  // f32 [rows, channels], contiguous; for causal_conv1d also ready rows (residual_unit_for)
  ConvRows rows;
  ConvHistory history;
  TensorView snake_alpha;  // f32 [channels]: x passes through snake first; empty: it does not
};

// y[t] = epilogue(bias + sum_j w[tap j] . in[t - (taps - 1 - j) * dilation]) for stride 1 (strided and
// transposed kernels are re-laid at load: packed_matrix.h).   y: f32 [rows, outputs] (rows may be strided),
// may be the residual stream (accumulate); not x. Ready rows, 16 bits [rows + sequences * (taps - 1) *
// dilation, channels], have been through the snake; the histories are written into them, so that they are
// read once only.
void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue = {});

// The same sums over a signal that begins with the history of the first result ("valid" convolution):
// y[t] = epilogue(bias + sum_j w[tap j] . x[t + j * dilation]). (On a GPU an f32 matrix of one output may be
// summed in another order here.) x: f32 or product_input (linear.h) [rows + (taps - 1) * dilation, channels],
// dense; y: f32 [rows, outputs] (rows may be strided), not x.
void valid_conv1d(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation, TensorView y,
                  const Epilogue& epilogue = {});

// The two convolutions of a residual unit (dac/MODEL.md, Blocks): x + conv1(snake(conv7(snake(x)))).
struct ResidualConvs {
  const PackedMatrix* wide;             // 7 taps, channels -> channels
  int64_t dilation = 1;                 // of the wide one
  const PackedMatrix* narrow;           // 1 tap
  TensorView wide_alpha, narrow_alpha;  // f32 [channels]
};
// x: f32 [rows, channels]; y: x itself or, where that is faster (below), another tensor; history: that of the
// wide convolution. Equals the two causal_conv1d calls that it replaces.
void residual_unit(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                   const ResidualConvs& convs, TensorView y);
// Whether y may be another than x: then one kernel does it all, which reads rows of x for several rows of y.
bool residual_unit_is_apart(const Context& ctx, const ResidualConvs& convs, int64_t rows);

// A causal convolution that alone reads what a residual unit makes.
struct ConvReader {
  const PackedMatrix* weight = nullptr;
  TensorView snake_alpha;  // f32 [channels of the unit]
  int64_t look_back = 0;   // in rows of the unit
};
// Whether the unit can make its rows ready for the reader: through its snake and in its 16 bits, so that
// memory is written and read once less. Only where it is apart.
bool makes_ready(const Context& ctx, const ResidualConvs& convs, int64_t rows, const ConvReader& reader);
// residual_unit where it makes_ready. y: the reader's 16 bits [rows + sequences * look_back, channels], not
// x: the rows of each sequence behind room for what the reader looks back at. The reader gives the same bits
// as of f32 rows.
void residual_unit_for(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                       const ResidualConvs& convs, const ConvReader& reader, TensorView y);

// Per-channel kernel (groups = channels), stride 1, dilation 1.
// weight: f32 [taps, channels] (transposed at load), bias: f32 [channels], y: f32 [rows, channels].
void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias, TensorView y);

// y = x + sin^2(alpha x) / (alpha + 1e-9), per channel (dac/MODEL.md, Blocks).  x, y: f32 [rows, channels]; y
// may be x.
void snake(Context& ctx, TensorView x, TensorView alpha, TensorView y);

}  // namespace shoal::ops
