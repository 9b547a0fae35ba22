#include <span>

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/tasks.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {

void rms_norm(Context& ctx, TensorView x, TensorView weight, float eps, TensorView y) {
  const VectorKernels& kernels = vector_kernels();
  ctx.team->parallel_for(x.dim(0), rows_per_task(x.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      kernels.rms_norm(x.row<float>(row), weight.as<float>(), eps, y.row<float>(row), x.dim(1));
  });
}

void layer_norm(Context& ctx, TensorView x, TensorView weight, TensorView bias, float eps, TensorView y) {
  const VectorKernels& kernels = vector_kernels();
  ctx.team->parallel_for(x.dim(0), rows_per_task(x.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      kernels.layer_norm(x.row<float>(row), weight.as<float>(), bias.as<float>(), eps, y.row<float>(row),
                         x.dim(1));
  });
}

void layer_norm_by_row(Context& ctx, TensorView x, TensorView which, TensorView weights, TensorView biases,
                       float eps, TensorView y) {
  const VectorKernels& kernels = vector_kernels();
  const std::span<const int32_t> ids(which.as<int32_t>(), static_cast<size_t>(x.dim(0)));
  for (const int32_t id : ids)
    CHECK(id >= 0 && id < weights.dim(0), "layer_norm_by_row: row ", id, " of ", weights.dim(0));
  ctx.team->parallel_for(x.dim(0), rows_per_task(x.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int32_t id = ids[static_cast<size_t>(row)];
      kernels.layer_norm(x.row<float>(row), weights.row<float>(id), biases.row<float>(id), eps,
                         y.row<float>(row), x.dim(1));
    }
  });
}

}  // namespace shoal::ops::cpu
