#include "ops/lstm.h"

#include <array>

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"
#include "ops/linear.h"

namespace shoal::ops {
namespace {

void check_weight(const char* name, TensorView weight, Shape shape) {
  CHECK(weight.dtype() == DType::f32 && weight.shape() == shape, "pack_lstm: ", name, " is ",
        name_of(weight.dtype()), " ", weight.shape(), ", expected F32 ", shape);
}

void check_direction(const LstmDirection& direction, int64_t inputs, int64_t hidden) {
  check_weight("weight_ih", direction.weight_ih, {4 * hidden, inputs});
  check_weight("weight_hh", direction.weight_hh, {4 * hidden, hidden});
  check_weight("bias_ih", direction.bias_ih, {4 * hidden});
  check_weight("bias_hh", direction.bias_hh, {4 * hidden});
}

void check_rows(const char* name, TensorView rows, Shape shape) {
  CHECK(rows.dtype() == DType::f32 && rows.shape() == shape, "bidirectional_lstm: ", name, " is ",
        name_of(rows.dtype()), " ", rows.shape(), ", expected F32 ", shape);
}

// Of weights without memory. What a GPU pads its recurrence with is left out.
PackedLstm sized_lstm(Context& ctx, const LstmDirection& forward, const LstmDirection& backward,
                      DType dtype) {
  PackedLstm packed{.inputs = forward.weight_ih.dim(1), .hidden = forward.weight_hh.dim(1)};
  const Tensor bias = Tensor::sized(DType::f32, {2 * 4 * packed.hidden});
  packed.input = pack_stacked(ctx, std::array{forward.weight_ih, backward.weight_ih}, bias, dtype);
  packed.recurrent = Tensor::sized(
      DType::f32,
      on_cpu(ctx) ? cpu::recurrent_shape(packed.hidden) : Shape{2, 4 * packed.hidden, packed.hidden},
      ctx.device);
  return packed;
}

}  // namespace

PackedLstm pack_lstm(Context& ctx, const LstmDirection& forward, const LstmDirection& backward, DType dtype) {
  CHECK(forward.weight_ih.rank() == 2 && forward.weight_hh.rank() == 2, "pack_lstm: weight_ih is ",
        forward.weight_ih.shape(), ", weight_hh ", forward.weight_hh.shape());
  PackedLstm packed{.inputs = forward.weight_ih.dim(1), .hidden = forward.weight_hh.dim(1)};
  if (forward.weight_hh.is_sized_only()) return sized_lstm(ctx, forward, backward, dtype);
  Tensor bias(DType::f32, {2 * 4 * packed.hidden});
  float* sum = bias.as<float>();
  for (const LstmDirection* direction : {&forward, &backward}) {
    check_direction(*direction, packed.inputs, packed.hidden);
    for (int64_t i = 0; i < 4 * packed.hidden; ++i)
      *sum++ = direction->bias_ih.as<float>()[i] + direction->bias_hh.as<float>()[i];
  }
  packed.input = pack_stacked(ctx, std::array{forward.weight_ih, backward.weight_ih}, bias, dtype);
  packed.recurrent = on_cpu(ctx) ? cpu::pack_recurrent(forward, backward)
                                 : cuda::pack_recurrent(ctx, forward, backward, dtype);
  return packed;
}

void bidirectional_lstm(Context& ctx, TensorView x, const Segments& segments, const PackedLstm& lstm,
                        TensorView y) {
  check_segments("bidirectional_lstm", segments);
  const int64_t rows = segments.total_rows();
  check_rows("x", x, {rows, lstm.inputs});
  check_rows("y", y, {rows, 2 * lstm.hidden});
  if (rows == 0) return;
  if (!on_cpu(ctx)) return cuda::bidirectional_lstm(ctx, x, segments, lstm, y);
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView products = ctx.workspace->alloc(DType::f32, {rows, lstm.input.outputs});
  linear(ctx, x, lstm.input, products);
  cpu::run_lstm(ctx, products, segments, lstm, y);
}

}  // namespace shoal::ops
