#include "ops/vector_quantise.h"

#include <algorithm>

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

constexpr int64_t kRowsPerTask = 32;       // share the transposed entries
constexpr int64_t kMostDim = 64;           // what the kernel's block of transposed entries holds
constexpr int64_t kMostEntries = 1 << 24;  // indices are kept as floats

}  // namespace

void nearest_code(Context& ctx, TensorView x, TensorView directions, TensorView codes) {
  CHECK(x.rank() == 2 && x.dtype() == DType::f32, "nearest_code: x is ", name_of(x.dtype()), " ", x.shape(),
        ", expected F32 [rows, code_dim]");
  CHECK(directions.rank() == 2 && directions.dtype() == DType::f32 && directions.dim(1) == x.dim(1) &&
            directions.is_contiguous() && directions.dim(0) >= 1 && directions.dim(0) <= kMostEntries,
        "nearest_code: directions are ", name_of(directions.dtype()), " ", directions.shape(),
        ", expected dense F32 [entries, ", x.dim(1), "]");
  const bool a_column = codes.rank() == 1 || (codes.rank() == 2 && codes.dim(1) >= 1);
  CHECK(a_column && codes.dtype() == DType::i32 && codes.dim(0) == x.dim(0), "nearest_code: codes are ",
        name_of(codes.dtype()), " ", codes.shape(), " for x ", x.shape());
  if (x.dim(1) < 1 || x.dim(1) > kMostDim)
    fail(ErrorCode::unsupported, "nearest_code: code_dim is ", x.dim(1), ", expected 1 to ", kMostDim);
  if (x.dim(0) == 0) return;
  if (!on_cpu(ctx)) return cuda::nearest_code(ctx, x, directions, codes);
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView found = ctx.workspace->alloc(DType::i32, {x.dim(0)});
  // The length of x does not change the order of its products, so it is not divided out.
  const VectorKernels& kernels = vector_kernels();
  ctx.team->parallel_for(x.dim(0), kRowsPerTask, [&](int64_t begin, int64_t end, int) {
    kernels.nearest_codes(x.row<float>(begin), x.stride(0), end - begin, directions.as<float>(),
                          directions.dim(0), directions.dim(1), found.row<int32_t>(begin));
    for (int64_t row = begin; row < end; ++row) *codes.row<int32_t>(row) = *found.row<int32_t>(row);
  });
}

}  // namespace shoal::ops
