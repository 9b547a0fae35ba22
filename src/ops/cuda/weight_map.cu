#include <cudaTypedefs.h>

#include "ops/cuda/launch.cuh"
#include "ops/cuda/weight_map.cuh"

namespace shoal::ops::cuda {
namespace {

// The driver's function, found at run time: programs link the CUDA runtime alone.
PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const auto found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                           &result),
          "driver entry point");
    if (result != cudaDriverEntryPointSuccess)
      fail(ErrorCode::unavailable, "the GPU's driver is too old: it has no tensor maps (CUDA 12)");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return found;
}

}  // namespace

CUtensorMap weight_map(const void* weight, const MatrixShape& shape, int tile_rows, int tiles) {
  constexpr int kTileUnits = kTileBytes / kWeightMapUnit;  // no side of a rectangle may have more than 256
  const auto row_units = static_cast<cuuint64_t>(shape.row_tiles() * kTileUnits);
  const cuuint64_t sizes[] = {row_units, static_cast<cuuint64_t>(shape.tile_rows())};
  const cuuint64_t strides[] = {row_units * kWeightMapUnit};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(tiles * kTileUnits), static_cast<cuuint32_t>(tile_rows)};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  const CUresult result =
      encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_INT64, 2, const_cast<void*>(weight), sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(result == CUDA_SUCCESS, "tensor map of ", shape.tile_rows(), " x ", shape.row_tiles(),
        " tiles: CUDA error ", static_cast<int>(result));
  return map;
}

}  // namespace shoal::ops::cuda
