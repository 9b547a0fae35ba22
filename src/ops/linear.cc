#include "ops/linear.h"

#include "ops/cpu/matrix.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

// f32, or `narrow`.
void check_rows(const char* op, TensorView x, int64_t width, const char* name, DType narrow = DType::f32) {
  CHECK(x.rank() == 2 && (x.dtype() == DType::f32 || x.dtype() == narrow) && x.dim(1) == width, op, ": ",
        name, " is ", x.shape(), " ", name_of(x.dtype()), ", expected F32 or ", name_of(narrow), " [rows, ",
        width, "]");
}

void check_one_tap(const char* op, const PackedMatrix& weight, TensorView x, TensorView y) {
  CHECK(weight.taps == 1, op, ": the matrix has ", weight.taps, " taps");
  CHECK(x.dim(0) == y.dim(0), op, ": x ", x.shape(), ", y ", y.shape());
}

void check_norm(const char* op, const RmsNorm& norm, int64_t depth) {
  CHECK(norm.weight.dtype() == DType::f32 && norm.weight.shape() == Shape{depth}, op, ": norm weight is ",
        name_of(norm.weight.dtype()), " ", norm.weight.shape(), ", expected F32 [", depth, "]");
}

// What linear_swiglu may write: f32, or on a GPU 16 bits, which are the next product's input.
void check_swiglu_output(const char* op, const Context& ctx, TensorView y, int64_t hidden) {
  const bool narrow = !on_cpu(ctx) && (y.dtype() == DType::bf16 || y.dtype() == DType::f16);
  check_rows(op, y, hidden, "y", narrow ? y.dtype() : DType::f32);
}

void check_epilogue(const char* op, const Epilogue& epilogue, int64_t outputs) {
  if (epilogue.scale.empty()) return;
  CHECK(
      epilogue.scale.rank() == 1 && epilogue.scale.dim(0) == outputs && epilogue.scale.dtype() == DType::f32,
      op, ": scale is ", epilogue.scale.shape(), " for ", outputs, " outputs");
}

TensorView normed(Context& ctx, TensorView x, const RmsNorm& norm) {
  const TensorView y = ctx.workspace->alloc(DType::f32, x.shape());
  rms_norm(ctx, x, norm.weight, norm.eps, y);
  return y;
}

}  // namespace

DType product_input(const Context& ctx, const PackedMatrix& weight) {
  return on_cpu(ctx) ? DType::f32 : weight.dtype;
}

void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue) {
  check_rows("linear", x, weight.depth, "x", product_input(ctx, weight));
  check_rows("linear", y, weight.outputs, "y");
  check_one_tap("linear", weight, x, y);
  check_epilogue("linear", epilogue, weight.outputs);
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::linear(ctx, x, weight, y, epilogue);
  cuda::linear(ctx, x, weight, y, epilogue);
}

void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y) {
  check_rows("linear_swiglu", x, gate_up.depth, "x", product_input(ctx, gate_up));
  check_swiglu_output("linear_swiglu", ctx, y, gate_up.outputs);
  check_one_tap("linear_swiglu", gate_up, x, y);
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::linear_swiglu(ctx, x, gate_up, y);
  cuda::linear_swiglu(ctx, x, gate_up, y);
}

void norm_linear(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& weight, TensorView y) {
  check_rows("norm_linear", x, weight.depth, "x");
  check_rows("norm_linear", y, weight.outputs, "y");
  check_one_tap("norm_linear", weight, x, y);
  check_norm("norm_linear", norm, weight.depth);
  if (x.dim(0) == 0) return;
  if (!on_cpu(ctx)) return cuda::norm_linear(ctx, x, norm, weight, y);
  const Workspace::Scope scope(*ctx.workspace);
  cpu::linear(ctx, normed(ctx, x, norm), weight, y, {});
}

void norm_swiglu(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& gate_up, TensorView y) {
  check_rows("norm_swiglu", x, gate_up.depth, "x");
  check_swiglu_output("norm_swiglu", ctx, y, gate_up.outputs);
  check_one_tap("norm_swiglu", gate_up, x, y);
  check_norm("norm_swiglu", norm, gate_up.depth);
  if (x.dim(0) == 0) return;
  if (!on_cpu(ctx)) return cuda::norm_swiglu(ctx, x, norm, gate_up, y);
  const Workspace::Scope scope(*ctx.workspace);
  cpu::linear_swiglu(ctx, normed(ctx, x, norm), gate_up, y);
}

}  // namespace shoal::ops
