#include "ops/conv1d.h"
#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/tasks.h"
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
  if (!on_cpu(ctx)) return cuda::snake(ctx, x, alpha, y);
  const VectorKernels& kernels = vector_kernels();
  ctx.team->parallel_for(x.dim(0), cpu::rows_per_task(x.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      kernels.snake(x.row<float>(row), alpha.as<float>(), y.row<float>(row), x.dim(1));
  });
}

}  // namespace shoal::ops
