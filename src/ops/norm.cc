#include "ops/norm.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check_rows(const char* op, TensorView x, TensorView y) {
  CHECK(x.rank() == 2 && x.dtype() == DType::f32 && x.dim(1) > 0, op, ": x is ", name_of(x.dtype()), " ",
        x.shape(), ", expected F32 [rows, dim]");
  CHECK(y.dtype() == DType::f32 && y.shape() == x.shape(), op, ": y is ", name_of(y.dtype()), " ", y.shape(),
        ", x ", x.shape());
}

void check(const char* op, TensorView x, TensorView weight, TensorView y) {
  check_rows(op, x, y);
  CHECK(weight.dtype() == DType::f32 && weight.shape() == Shape{x.dim(1)}, op, ": weight is ",
        name_of(weight.dtype()), " ", weight.shape(), ", expected F32 [", x.dim(1), "]");
}

}  // namespace

void rms_norm(Context& ctx, TensorView x, TensorView weight, float eps, TensorView y) {
  check("rms_norm", x, weight, y);
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::rms_norm(ctx, x, weight, eps, y);
  cuda::rms_norm(ctx, x, weight, eps, y);
}

void layer_norm(Context& ctx, TensorView x, TensorView weight, TensorView bias, float eps, TensorView y) {
  check("layer_norm", x, weight, y);
  CHECK(bias.dtype() == DType::f32 && bias.shape() == weight.shape(), "layer_norm: bias is ",
        name_of(bias.dtype()), " ", bias.shape(), ", expected F32 ", weight.shape());
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::layer_norm(ctx, x, weight, bias, eps, y);
  cuda::layer_norm(ctx, x, weight, bias, eps, y);
}

void layer_norm_by_row(Context& ctx, TensorView x, TensorView which, TensorView weights, TensorView biases,
                       float eps, TensorView y) {
  check_rows("layer_norm_by_row", x, y);
  CHECK(which.dtype() == DType::i32 && which.shape() == Shape{x.dim(0)}, "layer_norm_by_row: which is ",
        name_of(which.dtype()), " ", which.shape(), ", expected I32 [", x.dim(0), "]");
  for (const TensorView& table : {weights, biases})
    CHECK(table.dtype() == DType::f32 && table.rank() == 2 && table.dim(0) > 0 &&
              table.shape() == (Shape{weights.dim(0), x.dim(1)}),
          "layer_norm_by_row: weights or biases are ", name_of(table.dtype()), " ", table.shape(),
          ", expected F32 [n, ", x.dim(1), "]");
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::layer_norm_by_row(ctx, x, which, weights, biases, eps, y);
  cuda::layer_norm_by_row(ctx, x, which, weights, biases, eps, y);
}

}  // namespace shoal::ops
