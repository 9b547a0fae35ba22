// Owners of the CUDA runtime's handles.
#pragma once

#include <cuda_runtime.h>
#include <memory>
#include <type_traits>

namespace shoal::ops::cuda {

// Nobody could do anything about an error when a handle is given back.
template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    if (kDestroy(handle) != cudaSuccess) cudaGetLastError();
  }
};
using StreamHandle = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy<cudaStreamDestroy>>;
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy<cudaEventDestroy>>;

}  // namespace shoal::ops::cuda
