// Addresses of shared memory as instructions take them.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace shoal::ops::cuda {

using SharedAddress = uint32_t;

__device__ inline SharedAddress shared_address(const void* p) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(p));
}

}  // namespace shoal::ops::cuda
