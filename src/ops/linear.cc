#include "ops/linear.h"

#include "ops/cpu/matrix.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check_rows(const char* op, TensorView x, int64_t width, const char* name) {
  CHECK(x.rank() == 2 && x.dtype() == DType::f32 && x.dim(1) == width, op, ": ", name, " is ", x.shape(), " ",
        name_of(x.dtype()), ", expected F32 [rows, ", width, "]");
}

void check_epilogue(const char* op, const Epilogue& epilogue, int64_t outputs) {
  if (epilogue.scale.empty()) return;
  CHECK(
      epilogue.scale.rank() == 1 && epilogue.scale.dim(0) == outputs && epilogue.scale.dtype() == DType::f32,
      op, ": scale is ", epilogue.scale.shape(), " for ", outputs, " outputs");
}

}  // namespace

void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue) {
  CHECK(weight.taps == 1, "linear: the matrix has ", weight.taps, " taps");
  check_rows("linear", x, weight.depth, "x");
  check_rows("linear", y, weight.outputs, "y");
  CHECK(x.dim(0) == y.dim(0), "linear: x ", x.shape(), ", y ", y.shape());
  check_epilogue("linear", epilogue, weight.outputs);
  if (x.dim(0) == 0) return;
  if (ctx.device.kind == DeviceKind::cpu) return cpu::linear(ctx, x, weight, y, epilogue);
  cuda::linear(ctx, x, weight, y, epilogue);
}

void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y) {
  CHECK(gate_up.taps == 1, "linear_swiglu: the matrix has ", gate_up.taps, " taps");
  check_rows("linear_swiglu", x, gate_up.depth, "x");
  check_rows("linear_swiglu", y, gate_up.outputs, "y");
  CHECK(x.dim(0) == y.dim(0), "linear_swiglu: x ", x.shape(), ", y ", y.shape());
  if (x.dim(0) == 0) return;
  if (ctx.device.kind == DeviceKind::cpu) return cpu::linear_swiglu(ctx, x, gate_up, y);
  cuda::linear_swiglu(ctx, x, gate_up, y);
}

}  // namespace shoal::ops
