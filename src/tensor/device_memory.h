// Memory of GPUs, and host memory that GPUs copy at full speed. tensor/cuda/ implements it; a build without
// CUDA links tensor/no_cuda/, which throws Error(unavailable). Used through Buffer and Tensor (tensor.h).
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace shoal::device_memory {

// Each call makes its device current for the calling thread and leaves it so: switching back would create a
// context on a device that nobody asked for.

// Aligned to 256 bytes, not initialised. Throws Error: resource_exhausted (with the bytes asked for and the
// bytes that are free), unavailable (no such device, no driver, or no CUDA in this build).
void* allocate(int64_t bytes, int device);
// Page-locked host memory, aligned like allocate's; `device` is the one that will copy it.
void* allocate_page_locked(int64_t bytes, int device);
void release(void* memory) noexcept;
void release_page_locked(void* memory) noexcept;

// Both wait until the copy is done, but do not order other work: earlier work on streams that uses the memory
// must have finished. At least one side is on a GPU.
void copy(const void* from, Device from_device, void* to, Device to_device, int64_t bytes);
void zero(void* memory, int device, int64_t bytes);

// For tests: `allocations` more succeed, the next one fails as if memory were exhausted, and later ones
// succeed again. Below 0: none fails.
void fail_allocation_after(int64_t allocations);
// For the implementations: counts an allocation; whether it is the one to refuse.
bool refuse_allocation();

}  // namespace shoal::device_memory
