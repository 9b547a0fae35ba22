// What kernels ask of the memory that they load and store in vectors.
#pragma once

#include <cstdint>

namespace shoal::ops::cuda {

inline bool is_aligned(const void* data, int64_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace shoal::ops::cuda
