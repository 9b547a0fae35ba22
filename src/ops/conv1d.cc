#include "ops/conv1d.h"

#include <algorithm>
#include <utility>

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

bool is_f32(TensorView view, std::initializer_list<int64_t> shape) {
  return view.dtype() == DType::f32 && view.shape() == Shape(shape) && view.is_contiguous();
}

void check_sequences(const char* op, const Context& ctx, const ConvRows& rows) {
  CHECK(!rows.rows.offsets.empty() && rows.rows.offsets[0] == 0, op, ": offsets must start with 0");
  for (int s = 0; s < rows.rows.sequences(); ++s)
    CHECK(rows.rows.count(s) >= 0, op, ": offsets of sequence ", s, " fall");
  if (on_cpu(ctx)) return;
  const int64_t sequences = rows.rows.sequences();
  CHECK(rows.offsets.dtype() == DType::i32 && rows.offsets.shape() == Shape{sequences + 1} && rows.rate >= 1,
        op, ": device offsets are ", name_of(rows.offsets.dtype()), " ", rows.offsets.shape(), " at rate ",
        rows.rate, " for ", sequences, " sequences");
}

// Each sequence has a slot of its own.
void check_slots(const char* op, Context& ctx, const ConvHistory& history, int sequences) {
  CHECK(static_cast<int>(history.slots.size()) == sequences, op, ": ", history.slots.size(),
        " history slots for ", sequences, " sequences");
  const int64_t slots = history.pool.dim(0);
  const Workspace::Scope scope(*ctx.workspace);
  const std::span<uint8_t> taken = ctx.workspace->array<uint8_t>(slots);
  std::ranges::fill(taken, uint8_t{0});
  for (const int32_t slot : history.slots) {
    CHECK(0 <= slot && slot < slots, op, ": history slot ", slot, " of ", slots);
    CHECK(std::exchange(taken[static_cast<size_t>(slot)], uint8_t{1}) == 0, op,
          ": two sequences in history slot ", slot);
  }
}

// floats: how much of its inputs the convolution keeps per sequence.
void check_history(const char* op, Context& ctx, const ConvRows& rows, const ConvHistory& history,
                   int64_t floats) {
  if (floats == 0) return;
  CHECK(history.pool.rank() == 2 && history.pool.dtype() == DType::f32 && history.pool.is_contiguous(), op,
        ": history pool is ", name_of(history.pool.dtype()), " ", history.pool.shape(),
        ", expected dense F32 [slots, floats]");
  CHECK(history.offset >= 0 && history.offset + floats <= history.pool.dim(1), op, ": history of ", floats,
        " floats at ", history.offset, " of ", history.pool.dim(1));
  if (on_cpu(ctx)) return check_slots(op, ctx, history, rows.rows.sequences());
  CHECK(rows.slots.dtype() == DType::i32 && rows.slots.shape() == Shape{rows.rows.sequences()}, op,
        ": device slots are ", name_of(rows.slots.dtype()), " ", rows.slots.shape(), " for ",
        rows.rows.sequences(), " sequences");
}

void check_rows(const char* op, const ConvInput& input, int64_t channels) {
  const int64_t rows = input.rows.rows.rows();
  CHECK(is_f32(input.x, {rows, channels}), op, ": x is ", input.x.shape(), ", expected dense F32 [", rows,
        ", ", channels, "]");
}

// Rows that a residual unit made ready on a GPU.
void check_ready_rows(const char* op, Context& ctx, const ConvInput& input, const PackedMatrix& weight,
                      int64_t history_rows) {
  const int64_t rows = input.rows.rows.rows() + input.rows.rows.sequences() * history_rows;
  CHECK(!on_cpu(ctx) && size_of(input.x.dtype()) == 2 && input.x.dtype() == weight.format.operand &&
            input.x.shape() == Shape({rows, weight.depth}) && input.x.is_contiguous(),
        op, ": ready rows are ", name_of(input.x.dtype()), " ", input.x.shape(), ", expected [", rows, ", ",
        weight.depth, "]");
}

// history_rows: how far the convolution looks back.
void check_input(const char* op, Context& ctx, const ConvInput& input, int64_t channels,
                 int64_t history_rows) {
  check_sequences(op, ctx, input.rows);
  CHECK(input.snake_alpha.empty() || is_f32(input.snake_alpha, {channels}), op, ": snake alpha is ",
        input.snake_alpha.shape());
  check_history(op, ctx, input.rows, input.history, history_rows * channels);
}

void check_output(const char* op, TensorView y, int64_t rows, int64_t outputs) {
  CHECK(y.rank() == 2 && y.dtype() == DType::f32 && y.dim(0) == rows && y.dim(1) == outputs, op, ": y is ",
        y.shape(), ", expected F32 [", rows, ", ", outputs, "]");
}

void check_unit(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                const ResidualConvs& convs) {
  const PackedMatrix &wide = *convs.wide, &narrow = *convs.narrow;
  const int64_t channels = wide.depth;
  CHECK(
      wide.outputs == channels && narrow.taps == 1 && narrow.depth == channels && narrow.outputs == channels,
      "residual_unit: convolutions of ", wide.taps, " taps, ", channels, " -> ", wide.outputs, " and of ",
      narrow.taps, ", ", narrow.depth, " -> ", narrow.outputs);
  CHECK(convs.dilation >= 1, "residual_unit: dilation ", convs.dilation);
  const ConvInput input{x, rows, history, convs.wide_alpha};
  check_input("residual_unit", ctx, input, channels, (wide.taps - 1) * convs.dilation);
  check_rows("residual_unit", input, channels);
  CHECK(convs.narrow_alpha.empty() || is_f32(convs.narrow_alpha, {channels}),
        "residual_unit: snake alpha is ", convs.narrow_alpha.shape());
}

void check_conv_epilogue(const char* op, const Epilogue& epilogue, int64_t outputs) {
  CHECK(epilogue.scale.empty() || is_f32(epilogue.scale, {outputs}), op, ": scale is ",
        epilogue.scale.shape());
}

}  // namespace

void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue) {
  CHECK(dilation >= 1, "causal_conv1d: dilation ", dilation);
  const int64_t look_back = (weight.taps - 1) * dilation;
  check_input("causal_conv1d", ctx, input, weight.depth, look_back);
  if (input.x.dtype() == DType::f32)
    check_rows("causal_conv1d", input, weight.depth);
  else
    check_ready_rows("causal_conv1d", ctx, input, weight, look_back);
  check_output("causal_conv1d", y, input.rows.rows.rows(), weight.outputs);
  check_conv_epilogue("causal_conv1d", epilogue, weight.outputs);
  if (input.rows.rows.rows() == 0) return;
  if (on_cpu(ctx)) return cpu::causal_conv1d(ctx, input, weight, dilation, y, epilogue);
  cuda::causal_conv1d(ctx, input, weight, dilation, y, epilogue);
}

void valid_conv1d(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation, TensorView y,
                  const Epilogue& epilogue) {
  CHECK(dilation >= 1, "valid_conv1d: dilation ", dilation);
  const int64_t rows = x.dim(0) - (weight.taps - 1) * dilation;
  CHECK(x.rank() == 2 && x.dim(1) == weight.depth && x.is_contiguous() &&
            (x.dtype() == DType::f32 || x.dtype() == product_input(ctx, weight)),
        "valid_conv1d: x is ", name_of(x.dtype()), " ", x.shape(), " for ", weight.depth, " inputs");
  CHECK(rows >= 0, "valid_conv1d: ", x.dim(0), " rows for ", weight.taps, " taps of dilation ", dilation);
  check_output("valid_conv1d", y, rows, weight.outputs);
  check_conv_epilogue("valid_conv1d", epilogue, weight.outputs);
  if (rows == 0) return;
  if (on_cpu(ctx)) return cpu::valid_conv1d(ctx, x, weight, dilation, y, epilogue);
  cuda::valid_conv1d(ctx, x, weight, dilation, y, epilogue);
}

bool residual_unit_is_apart(const Context& ctx, const ResidualConvs& convs, int64_t rows) {
  return !on_cpu(ctx) && cuda::residual_unit_is_apart(ctx, convs, rows);
}

bool makes_ready(const Context& ctx, const ResidualConvs& convs, int64_t rows, const ConvReader& reader) {
  return !on_cpu(ctx) && cuda::makes_ready(ctx, convs, rows, reader);
}

void residual_unit(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                   const ResidualConvs& convs, TensorView y) {
  check_unit(ctx, x, rows, history, convs);
  CHECK(y.data() == x.data() || residual_unit_is_apart(ctx, convs, x.dim(0)), "residual_unit: y is not x");
  if (on_cpu(ctx)) {
    const Workspace::Scope scope(*ctx.workspace);
    const TensorView between = ctx.workspace->like(x);
    causal_conv1d(ctx, {x, rows, history, convs.wide_alpha}, *convs.wide, convs.dilation, between);
    return causal_conv1d(ctx, {between, rows, {}, convs.narrow_alpha}, *convs.narrow, 1, x,
                         {.accumulate = true});
  }
  check_output("residual_unit", y, x.dim(0), convs.wide->outputs);
  if (x.dim(0) == 0) return;
  cuda::residual_unit(ctx, x, rows, history, convs, y);
}

void residual_unit_for(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                       const ResidualConvs& convs, const ConvReader& reader, TensorView y) {
  check_unit(ctx, x, rows, history, convs);
  CHECK(makes_ready(ctx, convs, x.dim(0), reader), "residual_unit: rows cannot be made ready");
  const int64_t channels = convs.wide->outputs;
  const Shape shape{x.dim(0) + rows.rows.sequences() * reader.look_back, channels};
  CHECK(y.dtype() == reader.weight->format.operand && y.shape() == shape && y.is_contiguous(),
        "residual_unit: y is ", name_of(y.dtype()), " ", y.shape(), ", expected ", shape);
  CHECK(is_f32(reader.snake_alpha, {channels}), "residual_unit: the reader's alpha is ",
        reader.snake_alpha.shape());
  cuda::residual_unit_for(ctx, x, rows, history, convs, reader, y);
}

void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias,
                      TensorView y) {
  CHECK(weight.rank() == 2 && weight.dim(0) >= 1, "depthwise_conv1d: weight is ", weight.shape());
  const int64_t taps = weight.dim(0), channels = weight.dim(1);
  CHECK(is_f32(weight, {taps, channels}), "depthwise_conv1d: weight is not dense F32");
  CHECK(bias.empty() || is_f32(bias, {channels}), "depthwise_conv1d: bias is ", bias.shape());
  check_input("depthwise_conv1d", ctx, input, channels, taps - 1);
  check_rows("depthwise_conv1d", input, channels);
  check_output("depthwise_conv1d", y, input.rows.rows.rows(), channels);
  if (input.rows.rows.rows() == 0) return;
  if (on_cpu(ctx)) return cpu::depthwise_conv1d(ctx, input, weight, bias, y);
  cuda::depthwise_conv1d(ctx, input, weight, bias, y);
}

}  // namespace shoal::ops
