// What CUDA calls return, as errors.
#pragma once

#include <cuda_runtime_api.h>

namespace shoal::cuda {

// Nothing for cudaSuccess. Otherwise throws Error naming `what`: resource_exhausted for refused memory,
// unavailable for a missing device or driver, internal for everything else. The error is taken out of the
// CUDA runtime, so that no later call finds it (one that broke the context stays: every later call fails with
// it again).
void check(cudaError_t status, const char* what);

// Makes a device current for the calling thread. Throws like check().
void make_current(int device);

}  // namespace shoal::cuda
