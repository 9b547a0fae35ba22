#include "ops/residual.h"

#include "ops/cuda_backend.h"
#include "ops/linear_checks.h"

namespace shoal::ops {

int64_t pending_bytes(int64_t rows, int64_t dim, DType weights) {
  if (rows < kFewestPendingRows || rows > kMostPendingRows || size_of(weights) != 2) return 0;
  return kPendingSegments * rows * dim * size_of(DType::f32);
}

Residual::Residual(Context& ctx, TensorView x, DType weights) : rows(x) {
  CHECK(x.rank() == 2 && x.dtype() == DType::f32 && x.is_contiguous(), "residual stream ", x.shape(), " ",
        name_of(x.dtype()));
  if (!on_cpu(ctx) && pending_bytes(x.dim(0), x.dim(1), weights) > 0 && cuda::can_add_later(ctx))
    sums = ctx.workspace->alloc(DType::f32, {kPendingSegments, x.dim(0), x.dim(1)});
}

void add_linear(Context& ctx, TensorView in, const PackedMatrix& weight, Residual& to) {
  settled(ctx, to);
  if (!to.sums.empty()) {
    check_linear("add_linear", ctx, in, weight, to.rows);
    to.pending = cuda::linear_sums(ctx, in, weight, to.sums);
  }
  if (!to.pending) linear(ctx, in, weight, to.rows, {.accumulate = true});
}

void norm_linear(Context& ctx, Residual& x, const RmsNorm& norm, const PackedMatrix& weight, TensorView y) {
  if (!x.pending) return norm_linear(ctx, x.rows, norm, weight, y);
  check_norm_linear(x.rows, norm, weight, y);
  cuda::norm_linear(ctx, x.rows, norm, weight, y, x.sums);
  x.pending = false;
}

void norm_swiglu(Context& ctx, Residual& x, const RmsNorm& norm, const PackedMatrix& gate_up, TensorView y) {
  if (!x.pending) return norm_swiglu(ctx, x.rows, norm, gate_up, y);
  check_norm_swiglu(ctx, x.rows, norm, gate_up, y);
  cuda::norm_swiglu(ctx, x.rows, norm, gate_up, y, x.sums);
  x.pending = false;
}

TensorView settled(Context& ctx, Residual& x) {
  if (x.pending) cuda::add_sums(ctx, x.sums, x.rows);
  x.pending = false;
  return x.rows;
}

}  // namespace shoal::ops
