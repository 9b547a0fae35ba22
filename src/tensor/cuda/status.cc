#include "tensor/cuda/status.h"

#include "base/error.h"

namespace shoal::cuda {
namespace {

ErrorCode code_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return ErrorCode::resource_exhausted;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
      return ErrorCode::unavailable;
    default:
      return ErrorCode::internal;
  }
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();
  fail(code_of(status), what, ": CUDA says \"", cudaGetErrorString(status), "\" (", cudaGetErrorName(status),
       ")");
}

void make_current(int device) {
  int current = 0;
  check(cudaGetDevice(&current), "current device");
  if (current != device) check(cudaSetDevice(device), "choosing the device");
}

}  // namespace shoal::cuda
