#include "ops/cuda/device/alignment.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/tile_arguments.cuh"

namespace shoal::ops::cuda {
namespace {

// The epilogue's y takes four outputs at once.
bool has_wide_stores(const ProductEpilogue& epilogue) {
  return epilogue.y_stride % 4 == 0 && is_aligned(epilogue.y, 4 * size_of(epilogue.y_dtype));
}

}  // namespace

bool is_plain(const MatrixShape& matrix, const ProductEpilogue& epilogue, const float* snake_alpha) {
  return has_wide_stores(epilogue) && matrix.outputs % kTileOutputs == 0 &&
         epilogue.activation == Activation::none && !(epilogue.accumulate && snake_alpha) &&
         is_aligned(epilogue.bias, 16) && is_aligned(epilogue.scale, 16) && is_aligned(snake_alpha, 16);
}

TileArguments tile_arguments(const Product& product, int rows, int outputs, const float* snake_alpha) {
  const MatrixShape& matrix = product.shape;
  CHECK(is_aligned(product.x, 16) && product.x_stride % 8 == 0, "tile product: rows of ", product.x_stride,
        " inputs are not aligned");
  const int64_t row_blocks = blocks_for(product.rows, rows);
  const int64_t output_blocks = blocks_for(matrix.tile_rows() * kTileOutputs, outputs);
  CHECK(row_blocks * output_blocks < int64_t{1} << 31, "tile product of ", product.rows, " rows");
  return {.x = static_cast<const uint4*>(product.x),
          .row_stride = static_cast<uint32_t>(product.x_stride / 8),
          .tap_stride = static_cast<uint32_t>(product.taps.dilation * product.x_stride / 8),
          .first_rows = product.taps.first_rows,
          .weight = static_cast<const uint4*>(product.weight),
          .rows = product.rows,
          .depth_chunks = static_cast<int>((matrix.depth + 7) / 8),
          .tap_tiles = static_cast<int>(matrix.tap_tiles()),
          .row_tiles = static_cast<int>(matrix.row_tiles()),
          .tile_rows = static_cast<int>(matrix.tile_rows()),
          .segments = static_cast<int>(segments_of(matrix)),
          .segment_tiles = static_cast<int>(matrix.segment_tiles()),
          .row_blocks = static_cast<int>(row_blocks),
          .output_blocks = static_cast<int>(output_blocks),
          .outputs = static_cast<int>(matrix.outputs),
          .paired = matrix.paired,
          .wide_stores = has_wide_stores(product.epilogue),
          .plain = is_plain(matrix, product.epilogue, snake_alpha),
          .epilogue = product.epilogue,
          .snake_alpha = snake_alpha};
}

}  // namespace shoal::ops::cuda
