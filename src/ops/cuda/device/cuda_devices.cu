#include <cuda_runtime.h>

#include "base/error.h"
#include "ops/cuda_devices.h"

namespace shoal::ops {

bool built_with_cuda() { return true; }

std::vector<CudaDevice> cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver or no device is an answer, not an error to be found by a later call
    return {};
  }
  std::vector<CudaDevice> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) break;  // positions are indices
    devices.push_back({properties.name, static_cast<int64_t>(properties.totalGlobalMem), properties.major,
                       properties.minor, properties.multiProcessorCount});
  }
  return devices;
}

int64_t cuda_free_memory(int index) {
  size_t free = 0, total = 0;
  if (cudaSetDevice(index) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess) {
    cudaGetLastError();
    fail(ErrorCode::unavailable, "cuda:", index, " does not answer");
  }
  return static_cast<int64_t>(free);
}

}  // namespace shoal::ops
