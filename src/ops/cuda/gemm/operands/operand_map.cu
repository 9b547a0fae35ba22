#include "ops/cuda/device/tensor_map.h"
#include "ops/cuda/gemm/operands/operand_map.cuh"

namespace shoal::ops::cuda {

CUtensorMap record_map(const void* weight, const MatrixShape& shape, const TileForm& form, int tile_rows,
                       int bytes) {
  const auto row_bytes = static_cast<cuuint64_t>(form.row_bytes(shape.row_tiles()));
  // No side of a rectangle may have more than 256 elements.
  const cuuint64_t sizes[] = {row_bytes / kWeightMapUnit, static_cast<cuuint64_t>(shape.tile_rows())};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(bytes / kWeightMapUnit),
                            static_cast<cuuint32_t>(tile_rows)};
  return tensor_map(weight, {.type = CU_TENSOR_MAP_DATA_TYPE_INT64,
                             .sizes = sizes,
                             .strides = {&row_bytes, 1},
                             .box = box,
                             .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE});
}

CUtensorMap weight_map(const void* weight, const MatrixShape& shape, int tile_rows, int tiles) {
  return record_map(weight, shape, {}, tile_rows, tiles * kTileBytes);
}

CUtensorMap rows_map(const void* x, int64_t rows, int64_t depth, int64_t stride, int box_rows,
                     int box_tiles) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(depth), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes = static_cast<cuuint64_t>(stride) * 2;
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_tiles * kTileInputs),
                            static_cast<cuuint32_t>(box_rows)};
  return tensor_map(x, {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                        .sizes = sizes,
                        .strides = {&row_bytes, 1},
                        .box = box,
                        .swizzle = box_tiles == 2 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B});
}

}  // namespace shoal::ops::cuda
