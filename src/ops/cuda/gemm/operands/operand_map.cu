#include <cudaTypedefs.h>

#include "base/error.h"
#include "ops/cuda/device/driver_function.h"
#include "ops/cuda/gemm/operands/operand_map.cuh"

namespace shoal::ops::cuda {
namespace {

using Encode = PFN_cuTensorMapEncodeTiled_v12000;

Encode encoder() {
  static const auto found = driver_function<Encode>("cuTensorMapEncodeTiled", 12000);
  if (!found) fail(ErrorCode::unavailable, "the GPU's driver is too old: it has no tensor maps (CUDA 12)");
  return found;
}

struct Rectangles {
  CUtensorMapDataType type;
  cuuint64_t sizes[2], stride;  // the stride in bytes
  cuuint32_t box[2];
  CUtensorMapSwizzle swizzle;
};

CUtensorMap map_of(const void* data, const Rectangles& r) {
  if (!data) return {};  // of a launch that is only planned
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  const CUresult result = encoder()(&map, r.type, 2, const_cast<void*>(data), r.sizes, &r.stride, r.box,
                                    steps, CU_TENSOR_MAP_INTERLEAVE_NONE, r.swizzle,
                                    CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(result == CUDA_SUCCESS, "tensor map of ", r.sizes[1], " x ", r.sizes[0], " elements, ", r.stride,
        " bytes a row: CUDA error ", static_cast<int>(result));
  return map;
}

}  // namespace

CUtensorMap record_map(const void* weight, const MatrixShape& shape, const TileForm& form, int tile_rows,
                       int bytes) {
  const auto row_bytes = static_cast<cuuint64_t>(form.row_bytes(shape.row_tiles()));
  return map_of(weight,  // no side of a rectangle may have more than 256 elements
                {.type = CU_TENSOR_MAP_DATA_TYPE_INT64,
                 .sizes = {row_bytes / kWeightMapUnit, static_cast<cuuint64_t>(shape.tile_rows())},
                 .stride = row_bytes,
                 .box = {static_cast<cuuint32_t>(bytes / kWeightMapUnit), static_cast<cuuint32_t>(tile_rows)},
                 .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE});
}

CUtensorMap weight_map(const void* weight, const MatrixShape& shape, int tile_rows, int tiles) {
  return record_map(weight, shape, {}, tile_rows, tiles * kTileBytes);
}

CUtensorMap rows_map(const void* x, int64_t rows, int64_t depth, int64_t stride, int box_rows,
                     int box_tiles) {
  return map_of(x,
                {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                 .sizes = {static_cast<cuuint64_t>(depth), static_cast<cuuint64_t>(rows)},
                 .stride = static_cast<cuuint64_t>(stride) * 2,
                 .box = {static_cast<cuuint32_t>(box_tiles * kTileInputs), static_cast<cuuint32_t>(box_rows)},
                 .swizzle = box_tiles == 2 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B});
}

}  // namespace shoal::ops::cuda
