// Maps by which bulk copies find boxes of a tensor in device memory (sm_90).
#pragma once

#include <cuda.h>
#include <span>

namespace shoal::ops::cuda {

// The innermost dimension comes first.
struct TensorBoxes {
  CUtensorMapDataType type;
  std::span<const cuuint64_t> sizes;    // elements
  std::span<const cuuint64_t> strides;  // bytes, of all dimensions but the innermost; multiples of 16
  std::span<const cuuint32_t> box;      // elements, at most 256 each
  CUtensorMapSwizzle swizzle;           // of the box in shared memory
};

// Passed to kernels by value. What a box has outside the tensor is read as zeros. data: 16-byte aligned; null
// in plans. Throws Error(unavailable) where the driver has no such copies.
CUtensorMap tensor_map(const void* data, const TensorBoxes& boxes);

}  // namespace shoal::ops::cuda
