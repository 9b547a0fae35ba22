#include <cudaTypedefs.h>

#include "base/error.h"
#include "ops/cuda/device/driver_function.h"
#include "ops/cuda/device/tensor_map.h"

namespace shoal::ops::cuda {
namespace {

constexpr size_t kMostDims = 5;

using Encode = PFN_cuTensorMapEncodeTiled_v12000;

Encode encoder() {
  static const auto found = driver_function<Encode>("cuTensorMapEncodeTiled", 12000);
  if (!found) fail(ErrorCode::unavailable, "the GPU's driver is too old: it has no tensor maps (CUDA 12)");
  return found;
}

}  // namespace

CUtensorMap tensor_map(const void* data, const TensorBoxes& b) {
  CHECK(!b.sizes.empty() && b.strides.size() + 1 == b.sizes.size() && b.box.size() == b.sizes.size() &&
            b.sizes.size() <= kMostDims,
        "tensor map of ", b.sizes.size(), " sizes, ", b.strides.size(), " strides, a box of ", b.box.size());
  if (!data) return {};  // of a launch that is only planned
  constexpr cuuint32_t kSteps[kMostDims] = {1, 1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result =
      encoder()(&map, b.type, static_cast<cuuint32_t>(b.sizes.size()), const_cast<void*>(data),
                b.sizes.data(), b.strides.data(), b.box.data(), kSteps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                b.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(result == CUDA_SUCCESS, "tensor map of ", b.sizes.back(), " x .. x ", b.sizes.front(),
        " elements: CUDA error ", static_cast<int>(result));
  return map;
}

}  // namespace shoal::ops::cuda
