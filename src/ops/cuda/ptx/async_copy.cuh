// Memory accesses that a kernel can issue and forget: weights, prefetches, copies into shared memory.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

// A copy with this policy tells the second-level cache to drop what it has read before anything else. For
// weights, keys and values that are read once in a step: of a model that is larger than the cache they would
// drive out the inputs and the code of the kernels that follow (docs/perf/notebook-decode.md).
__device__ inline uint64_t drop_first() {
  uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
#endif
  return policy;
}

// 16 bytes of a weight matrix: never written while the program runs (so that the incoherent path may be taken
// and the load may come before wait_for_inputs), read once (so that it needs no room in L1). volatile: the
// compiler must not move it behind the wait.
__device__ inline uint4 load_weight(const uint4* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

// Asks for `bytes` (a multiple of 16) of weights to be brought into L2.
__device__ inline void prefetch_weights(const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)),
               "r"(bytes));
#endif
}

// The same of the 32 bytes around `from`, of any memory and on every GPU.
__device__ inline void prefetch_sector(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(from)));
}

// Starts a copy of kBytes (4, 8 or 16, both ends aligned to it) from global to shared memory.
template <int kBytes>
__device__ inline void copy_async(void* to_shared, const void* from) {
  const uint32_t to = shared_address(to_shared);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(from))
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
                 "n"(kBytes)
                 : "memory");
}

// The same of 16 bytes of rows, whose neighbours are read soon; zeros instead where `present` is false
// (nothing is read then).
__device__ inline void copy_or_zero(uint32_t to_shared, const uint4* from, bool present) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to_shared),
               "l"(__cvta_generic_to_global(from)), "r"(present ? 16 : 0)
               : "memory");
}

// Ends a group: the calling thread's copies since the last one ended.
__device__ inline void end_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most the newest kOpen groups of the calling thread are under way.
template <int kOpen>
__device__ inline void wait_for_copy_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

// Waits for the calling thread's copies; a barrier shows them to the others.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace shoal::ops::cuda
