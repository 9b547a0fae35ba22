// How every kernel is started.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <utility>

#include "base/error.h"
#include "ops/context.h"
#include "ops/cuda/device/stream_state.h"
#include "tensor/cuda/status.h"

namespace shoal::ops::cuda {

using shoal::cuda::check;

struct Grid {
  dim3 blocks;
  dim3 threads;
  size_t shared_bytes = 0;  // dynamic
  unsigned cluster = 1;     // neighbouring blocks along x that see each other's shared memory (sm_90)
  // The next kernel reads, before it waits, what this one writes: it must not start early.
  bool successor_starts_late = false;
};

// Programmatic dependent launch: a kernel may start while the one before it in the stream is still running,
// so that it loads its weights meanwhile. EVERY kernel started by launch() must call wait_for_inputs(), or
// wait_for_predecessor(), in every thread before it writes any memory, or reads what its predecessor may have
// written. That waits until the predecessor has ended, and only then lets the successor start: so whatever
// stands two kernels back has ended when a kernel starts, and attention reads it before it waits
// (attention.h). A launch_dependents further up would break that; it would be slower, too: two kernels ahead
// of their inputs take issue slots and memory from the one that everybody waits for (a layer's four products
// of one row: 13.7 us instead of 17.8 on an H200).
__device__ inline void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The same in two steps, for kernels that are sooner ready if nobody starts beside them until they have
// staged their inputs: then let_successor_start().
__device__ inline void wait_for_predecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// After wait_for_predecessor(). Before it only by kernels whose successor is known to read nothing but
// constants before it waits, as products after the norm of their input: the successor may start as soon as
// there is room for it.
__device__ inline void let_successor_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Starts a kernel in the context's stream and checks that it was accepted. The kernel's name goes into
// errors. In a planning context nothing is started.
template <typename... Parameters, typename... Arguments>
void launch(Context& ctx, const char* name, const Grid& grid, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (is_planning(ctx)) return;
  StreamState& stream = state_of(ctx);
  stream.prepare(reinterpret_cast<const void*>(kernel));
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream.stream();
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (stream.can_start_early()) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  if (grid.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = grid.cluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  }
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...),
        name);
  if (grid.successor_starts_late) stream.hold_next();
}

inline int64_t blocks_for(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

}  // namespace shoal::ops::cuda
