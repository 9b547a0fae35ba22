// The NVIDIA devices that this process can see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::ops {

struct CudaDevice {
  std::string name;          // "NVIDIA H200"
  int64_t memory_bytes = 0;  // total
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
};

// Whether this build has the CUDA backend.
bool built_with_cuda();

// In the order of the CUDA runtime. Empty without a driver or a device, and in a build without CUDA; never
// throws for those.
std::vector<CudaDevice> cuda_devices();

// Bytes that are free on a device of that list. Throws Error(unavailable).
int64_t cuda_free_memory(int index);

}  // namespace shoal::ops
