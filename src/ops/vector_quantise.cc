#include "ops/vector_quantise.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

constexpr int64_t kMostDim = 64;           // limit of the kernel's block of transposed entries
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
  if (on_cpu(ctx)) return cpu::nearest_code(ctx, x, directions, codes);
  cuda::nearest_code(ctx, x, directions, codes);
}

}  // namespace shoal::ops
