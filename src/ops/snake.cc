#include "ops/conv1d.h"
#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {

void snake(Context& ctx, TensorView x, TensorView alpha, TensorView y) {
  CHECK(x.rank() == 2 && x.dtype() == DType::f32, "snake: x is ", name_of(x.dtype()), " ", x.shape(),
        ", expected F32 [rows, channels]");
  CHECK(y.dtype() == DType::f32 && y.shape() == x.shape(), "snake: y is ", name_of(y.dtype()), " ", y.shape(),
        ", x ", x.shape());
  CHECK(alpha.dtype() == DType::f32 && alpha.shape() == Shape{x.dim(1)}, "snake: alpha is ",
        name_of(alpha.dtype()), " ", alpha.shape(), ", expected F32 [", x.dim(1), "]");
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::snake(ctx, x, alpha, y);
  cuda::snake(ctx, x, alpha, y);
}

}  // namespace shoal::ops
