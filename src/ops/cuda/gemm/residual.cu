// Products onto a residual stream whose sums wait (residual.h, operands/settled.cu).
#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/operands/settled.cuh"
#include "ops/cuda/gemm/sm90/partial_product.h"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kSharedBytes = 48 << 10;  // of a block, without asking for more

}  // namespace

bool can_add_later(const Context& ctx) { return has_wgmma(ctx); }

bool linear_sums(Context& ctx, TensorView in, const PackedMatrix& weight, TensorView sums) {
  if (!weight.bias.empty() || !is_product_operand(in, weight.dtype) || size_of(weight.dtype) != 2)
    return false;
  if (settled_bytes(weight.outputs) > kSharedBytes) return false;
  return partial_product(ctx,
                         {.shape = shape_of(weight),
                          .dtype = weight.dtype,
                          .weight = weight.storage.view().data(),
                          .x = in.data(),
                          .x_stride = in.stride(0),
                          .rows = in.dim(0)},
                         sums);
}

}  // namespace shoal::ops::cuda
