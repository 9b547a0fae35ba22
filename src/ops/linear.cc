#include "ops/linear.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"
#include "ops/linear_checks.h"

namespace shoal::ops {
namespace {

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
  return on_cpu(ctx) ? DType::f32 : weight.format.operand;
}

void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue) {
  check_linear("linear", ctx, x, weight, y);
  check_epilogue("linear", epilogue, weight.outputs);
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::linear(ctx, x, weight, y, epilogue);
  cuda::linear(ctx, x, weight, y, epilogue);
}

void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y) {
  check_rows("linear_swiglu", x, gate_up.depth, "x", product_input(ctx, gate_up));
  check_swiglu("linear_swiglu", ctx, gate_up, y);
  check_one_tap("linear_swiglu", gate_up, x, y);
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::linear_swiglu(ctx, x, gate_up, y);
  cuda::linear_swiglu(ctx, x, gate_up, y);
}

void norm_linear(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& weight, TensorView y) {
  check_norm_linear(x, norm, weight, y);
  if (x.dim(0) == 0) return;
  if (!on_cpu(ctx)) return cuda::norm_linear(ctx, x, norm, weight, y);
  const Workspace::Scope scope(*ctx.workspace);
  cpu::linear(ctx, normed(ctx, x, norm), weight, y, {});
}

void norm_swiglu(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& gate_up, TensorView y) {
  check_norm_swiglu(ctx, x, norm, gate_up, y);
  if (x.dim(0) == 0) return;
  if (!on_cpu(ctx)) return cuda::norm_swiglu(ctx, x, norm, gate_up, y);
  const Workspace::Scope scope(*ctx.workspace);
  cpu::linear_swiglu(ctx, normed(ctx, x, norm), gate_up, y);
}

}  // namespace shoal::ops
