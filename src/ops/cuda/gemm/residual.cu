// Products onto a residual stream whose sums wait (residual.h, operands/settled.cu).
#include "ops/cuda/gemm/choose.h"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/sm90/partial_product.h"
#include "ops/cuda/gemm/sm90/swapped_product.h"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {

bool can_add_later(const Context& ctx) { return has_wgmma(ctx); }

bool linear_sums(Context& ctx, TensorView in, const PackedMatrix& weight, TensorView sums) {
  const Gemm gemm{.shape = shape_of(weight),
                  .operand = weight.format.operand,
                  .form = form_of(weight.format),
                  .rows = in.dim(0)};
  if (!weight.bias.empty() || !is_product_operand(in, weight.format.operand) ||
      !adds_later(gemm, machine_of(ctx)))
    return false;
  const Workspace::Scope scope(*ctx.workspace);
  Product product = with_input(product_by(weight, in.dim(0)), in);
  if (is_narrow(product)) {
    if (swapped_segments(ctx, product, sums)) return true;
    product = widened(ctx, product);
  }
  if (!segments_shape(product.shape, product.rows, machine_of(ctx)))
    return partial_product(ctx, product, sums);
  wide_segments(ctx, product, sums);
  return true;
}

}  // namespace shoal::ops::cuda
