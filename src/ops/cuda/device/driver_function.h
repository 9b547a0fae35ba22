#pragma once

#include <cuda_runtime.h>

#include "tensor/cuda/status.h"

namespace shoal::ops::cuda {

// A function of the driver, found at run time: programs link only the CUDA runtime. version: since which
// there is one, as 12040 for CUDA 12.4. Null: the driver has none.
template <typename Function>
Function driver_function(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  shoal::cuda::check(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result),
                     "driver entry point");
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
}

}  // namespace shoal::ops::cuda
