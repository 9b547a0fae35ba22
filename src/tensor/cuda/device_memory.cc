#include "tensor/device_memory.h"

#include <algorithm>

#include "tensor/cuda/status.h"

namespace shoal::device_memory {
namespace {

using cuda::check;

[[noreturn]] void refused(int64_t bytes, int device) {
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  cudaGetLastError();
  fail(ErrorCode::resource_exhausted, "device memory: ", bytes, " bytes were refused by cuda:", device,
       ", where ", free, " of ", total, " bytes are free");
}

cudaMemcpyKind direction(Device from, Device to) {
  if (from.kind == DeviceKind::cpu) return cudaMemcpyHostToDevice;
  return to.kind == DeviceKind::cpu ? cudaMemcpyDeviceToHost : cudaMemcpyDefault;
}

}  // namespace

void* allocate(int64_t bytes, int device) {
  cuda::make_current(device);
  void* memory = nullptr;
  const cudaError_t status = refuse_allocation()
                                 ? cudaErrorMemoryAllocation
                                 : cudaMalloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  if (status == cudaErrorMemoryAllocation) refused(bytes, device);
  check(status, "device memory");
  return memory;
}

void* allocate_page_locked(int64_t bytes, int device) {
  cuda::make_current(device);
  void* memory = nullptr;
  const cudaError_t status =
      refuse_allocation()
          ? cudaErrorMemoryAllocation
          : cudaHostAlloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail(ErrorCode::resource_exhausted, "page-locked memory: ", bytes, " bytes were refused");
  }
  check(status, "page-locked memory");
  return memory;
}

// An error here cannot be handled, and later calls report a broken context again.
void release(void* memory) noexcept {
  if (cudaFree(memory) != cudaSuccess) cudaGetLastError();
}
void release_page_locked(void* memory) noexcept {
  if (cudaFreeHost(memory) != cudaSuccess) cudaGetLastError();
}

// The thread's own stream: the legacy stream would wait for other threads' streams, and break their graph
// captures.
void copy(const void* from, Device from_device, void* to, Device to_device, int64_t bytes) {
  if (bytes == 0) return;
  cuda::make_current(from_device.kind == DeviceKind::cpu ? to_device.index : from_device.index);
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), direction(from_device, to_device),
                        cudaStreamPerThread),
        "copy");
  check(cudaStreamSynchronize(cudaStreamPerThread), "copy");
}

void zero(void* memory, int device, int64_t bytes) {
  if (bytes == 0) return;
  cuda::make_current(device);
  check(cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes), cudaStreamPerThread), "zeros");
  check(cudaStreamSynchronize(cudaStreamPerThread), "zeros");
}

}  // namespace shoal::device_memory
