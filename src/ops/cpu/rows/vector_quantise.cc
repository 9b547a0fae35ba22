#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kRowsPerSearch = 32;  // share the transposed entries

}  // namespace

void nearest_code(Context& ctx, TensorView x, TensorView directions, TensorView codes) {
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView found = ctx.workspace->alloc(DType::i32, {x.dim(0)});
  // The length of x does not change the order of its products, so it is not divided out.
  const VectorKernels& kernels = vector_kernels();
  ctx.team->parallel_for(x.dim(0), kRowsPerSearch, [&](int64_t begin, int64_t end, int) {
    kernels.nearest_codes(x.row<float>(begin), x.stride(0), end - begin, directions.as<float>(),
                          directions.dim(0), directions.dim(1), found.row<int32_t>(begin));
    for (int64_t row = begin; row < end; ++row) *codes.row<int32_t>(row) = *found.row<int32_t>(row);
  });
}

}  // namespace shoal::ops::cpu
