#include "ops/conv1d.h"

#include "ops/cpu/matrix.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

bool is_f32(TensorView view, std::initializer_list<int64_t> shape) {
  return view.dtype() == DType::f32 && view.shape() == Shape(shape) && view.is_contiguous();
}

// history_rows: how far the convolution looks back.
void check_input(const char* op, const ConvInput& input, int64_t channels, int64_t history_rows) {
  CHECK(!input.rows.offsets.empty() && input.rows.offsets[0] == 0, op, ": offsets must start with 0");
  for (int s = 0; s < input.rows.sequences(); ++s)
    CHECK(input.rows.count(s) >= 0, op, ": offsets of sequence ", s, " fall");
  CHECK(is_f32(input.x, {input.rows.rows(), channels}), op, ": x is ", input.x.shape(),
        ", expected dense F32 [", input.rows.rows(), ", ", channels, "]");
  CHECK(input.snake_alpha.empty() || is_f32(input.snake_alpha, {channels}), op, ": snake alpha is ",
        input.snake_alpha.shape());
  if (history_rows == 0) return;
  CHECK(static_cast<int>(input.history.size()) == input.rows.sequences(), op, ": ", input.history.size(),
        " histories for ", input.rows.sequences(), " sequences");
  for (const TensorView& history : input.history)
    CHECK(is_f32(history, {history_rows, channels}), op, ": history is ", history.shape(),
          ", expected dense F32 [", history_rows, ", ", channels, "]");
}

void check_output(const char* op, TensorView y, int64_t rows, int64_t outputs) {
  CHECK(y.rank() == 2 && y.dtype() == DType::f32 && y.dim(0) == rows && y.dim(1) == outputs, op, ": y is ",
        y.shape(), ", expected F32 [", rows, ", ", outputs, "]");
}

}  // namespace

void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue) {
  CHECK(dilation >= 1, "causal_conv1d: dilation ", dilation);
  check_input("causal_conv1d", input, weight.depth, (weight.taps - 1) * dilation);
  check_output("causal_conv1d", y, input.rows.rows(), weight.outputs);
  CHECK(epilogue.scale.empty() || is_f32(epilogue.scale, {weight.outputs}), "causal_conv1d: scale is ",
        epilogue.scale.shape());
  if (input.rows.rows() == 0) return;
  if (ctx.device.kind == DeviceKind::cpu)
    return cpu::causal_conv1d(ctx, input, weight, dilation, y, epilogue);
  cuda::causal_conv1d(ctx, input, weight, dilation, y, epilogue);
}

void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias,
                      TensorView y) {
  CHECK(weight.rank() == 2 && weight.dim(0) >= 1, "depthwise_conv1d: weight is ", weight.shape());
  const int64_t taps = weight.dim(0), channels = weight.dim(1);
  CHECK(is_f32(weight, {taps, channels}), "depthwise_conv1d: weight is not dense F32");
  CHECK(bias.empty() || is_f32(bias, {channels}), "depthwise_conv1d: bias is ", bias.shape());
  check_input("depthwise_conv1d", input, channels, taps - 1);
  check_output("depthwise_conv1d", y, input.rows.rows(), channels);
  if (input.rows.rows() == 0) return;
  if (ctx.device.kind == DeviceKind::cpu) return cpu::depthwise_conv1d(ctx, input, weight, bias, y);
  cuda::depthwise_conv1d(ctx, input, weight, bias, y);
}

}  // namespace shoal::ops
