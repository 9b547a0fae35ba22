// Asynchronous copies into shared memory, in stages: groups of copies that are waited for together.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace shoal::ops::cuda {

// Copies 16 bytes into shared memory; zeros instead where `present` is false (nothing is read then).
__device__ inline void copy_or_zero(uint32_t to_shared, const uint4* from, bool present) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to_shared),
               "l"(__cvta_generic_to_global(from)), "r"(present ? 16 : 0)
               : "memory");
}
__device__ inline void end_stage() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kOpen>
__device__ inline void wait_for_stages() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

}  // namespace shoal::ops::cuda
