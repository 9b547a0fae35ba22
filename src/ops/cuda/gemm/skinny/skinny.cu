#include <limits>

#include "ops/cuda/gemm/operands/with_weights.cuh"
#include "ops/cuda/gemm/skinny/skinny_cut.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/skinny/split_cut.h"
#include "ops/cuda/gemm/skinny/split_product.h"
#include "ops/cuda/gemm/skinny/streamed_cut.h"
#include "ops/cuda/gemm/skinny/streamed_product.h"

namespace shoal::ops::cuda {

SkinnyArguments skinny_arguments(const Product& product, const RmsNorm* norm) {
  SkinnyArguments arguments = skinny_arguments(product.shape, product.rows, form_of(product.format));
  CHECK((product.rows - 1) * product.epilogue.y_stride + product.shape.outputs <=
            std::numeric_limits<int32_t>::max(),
        "y of a skinny product");
  arguments.weight = static_cast<const uint4*>(product.weight);
  arguments.scales = product.scales;
  arguments.x = product.x;
  arguments.x_stride = product.x_stride;
  arguments.norm_weight = norm ? norm->weight.as<float>() : nullptr;
  arguments.eps = norm ? norm->eps : 0.0f;
  arguments.epilogue = product.epilogue;
  return arguments;
}

bool skinny_product(Context& ctx, const Product& product, DType x_dtype, const RmsNorm* norm) {
  const MatrixShape& shape = product.shape;
  CHECK(product.rows > 0 && product.rows <= kSkinnyRows && shape.taps == 1, "skinny product of ",
        product.rows, " rows");
  CHECK(x_dtype == product.format.operand || (x_dtype == DType::f32 && shape.depth % 8 == 0));
  if (norm && product.rows > kNormRows) return false;
  const bool float_input = x_dtype == DType::f32;
  if (!norm && !float_input && is_split(shape, product.rows, form_of(product.format), machine_of(ctx)) &&
      split_product(ctx, product))
    return true;
  if ((norm || !float_input) && is_streamed(shape, product.rows, form_of(product.format), machine_of(ctx)) &&
      streamed_product(ctx, product, norm))
    return true;
  const SkinnyArguments arguments = skinny_arguments(product, norm);
  return with_weights(product.format, [&]<typename T, TileWeights kWeights> {
    return launch_skinny<T, kWeights>(ctx, arguments, float_input);
  });
}

}  // namespace shoal::ops::cuda
