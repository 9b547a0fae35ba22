#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/tasks.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {

void snake(Context& ctx, TensorView x, TensorView alpha, TensorView y) {
  const VectorKernels& kernels = vector_kernels();
  ctx.team->parallel_for(x.dim(0), rows_per_task(x.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      kernels.snake(x.row<float>(row), alpha.as<float>(), y.row<float>(row), x.dim(1));
  });
}

}  // namespace shoal::ops::cpu
