#include "ops/cuda/skinny.cuh"

namespace shoal::ops::cuda {

bool skinny_product(Context& ctx, const Product& product, DType x_dtype, const RmsNorm* norm) {
  const MatrixShape& shape = product.shape;
  CHECK(product.rows > 0 && product.rows <= kSkinnyRows && shape.taps == 1, "skinny product of ",
        product.rows, " rows");
  CHECK(x_dtype == product.dtype || (x_dtype == DType::f32 && shape.depth % 8 == 0));
  const SkinnyArguments arguments{.weight = static_cast<const uint4*>(product.weight),
                                  .x = product.x,
                                  .x_stride = product.x_stride,
                                  .rows = static_cast<int>(product.rows),
                                  .depth = static_cast<int>((shape.depth + 7) / 8 * 8),
                                  .outputs = static_cast<int>(shape.outputs),
                                  .tile_rows = static_cast<int>(shape.tile_rows()),
                                  .row_tiles = static_cast<int>(shape.row_tiles()),
                                  .segment_tiles = static_cast<int>(shape.segment_tiles()),
                                  .paired = shape.paired,
                                  .norm_weight = norm ? norm->weight.as<float>() : nullptr,
                                  .eps = norm ? norm->eps : 0.0f,
                                  .epilogue = product.epilogue};
  if (product.dtype == DType::bf16)
    return x_dtype == DType::f32 ? launch_skinny<__nv_bfloat16, true>(ctx, arguments)
                                 : launch_skinny<__nv_bfloat16, false>(ctx, arguments);
  return x_dtype == DType::f32 ? launch_skinny<__half, true>(ctx, arguments)
                               : launch_skinny<__half, false>(ctx, arguments);
}

}  // namespace shoal::ops::cuda
