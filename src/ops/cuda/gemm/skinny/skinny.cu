#include "ops/cuda/gemm/skinny/skinny.cuh"
#include "ops/cuda/gemm/skinny/skinny_product.h"

namespace shoal::ops::cuda {

bool skinny_product(Context& ctx, const Product& product, DType x_dtype, const RmsNorm* norm) {
  const MatrixShape& shape = product.shape;
  CHECK(product.rows > 0 && product.rows <= kSkinnyRows && shape.taps == 1, "skinny product of ",
        product.rows, " rows");
  CHECK(x_dtype == product.dtype || (x_dtype == DType::f32 && shape.depth % 8 == 0));
  if (norm && product.rows > kNormRows) return false;
  const SkinnyArguments arguments{
      .weight = static_cast<const uint4*>(product.weight),
      .x = product.x,
      .x_stride = product.x_stride,
      .rows = static_cast<int>(product.rows),
      .depth = static_cast<int>((shape.depth + 7) / 8 * 8),
      .outputs = static_cast<int>(shape.outputs),
      .tile_rows = static_cast<int>(shape.tile_rows()),
      .row_tiles = static_cast<int>(shape.row_tiles()),
      .segment_tiles = static_cast<int>(shape.segment_tiles()),
      .segments = static_cast<int>(blocks_for(shape.row_tiles(), shape.segment_tiles())),
      .paired = shape.paired,
      .norm_weight = norm ? norm->weight.as<float>() : nullptr,
      .eps = norm ? norm->eps : 0.0f,
      .epilogue = product.epilogue};
  const bool float_input = x_dtype == DType::f32;
  return product.dtype == DType::bf16 ? launch_skinny<__nv_bfloat16>(ctx, arguments, float_input)
                                      : launch_skinny<__half>(ctx, arguments, float_input);
}

}  // namespace shoal::ops::cuda
