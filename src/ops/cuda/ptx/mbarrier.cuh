// Barriers in shared memory, the copies that complete them, and clusters of blocks (sm_90).
#pragma once

#include <cstdint>
#include <cuda.h>
#include <cuda_runtime.h>

#include "ops/cuda/ptx/async_copy.cuh"

namespace shoal::ops::cuda {

__device__ inline void init_barrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// By the thread that has initialised barriers, before the others pass a barrier of the block or the cluster.
__device__ inline void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// The phase also waits for so many bytes, copied in bulk or sent.
__device__ inline void arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Arrives when the calling thread's copies so far (cp.async) are done.
__device__ inline void arrive_when_copied(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Until the phase of this parity is over. A new barrier is in phase 0; the one before counts as over.
// kSent: blocks of the cluster send what is waited for (send_to_cluster).
template <bool kSent = false>
__device__ inline void wait_for_phase(uint32_t barrier, uint32_t parity) {
  uint32_t over = 0;
  do {
    if constexpr (kSent)
      asm volatile(
          "{\n\t.reg .pred over;\n\t"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%1], %2;\n\t"
          "selp.u32 %0, 1, 0, over;\n\t}"
          : "=r"(over)
          : "r"(barrier), "r"(parity)
          : "memory");
    else
      asm volatile(
          "{\n\t.reg .pred over;\n\tmbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n\t"
          "selp.u32 %0, 1, 0, over;\n\t}"
          : "=r"(over)
          : "r"(barrier), "r"(parity)
          : "memory");
  } while (over == 0);
}

// Starts a copy of `bytes` (both ends and the size multiples of 16) to shared memory that counts for the
// barrier.
__device__ inline void copy_bulk(uint32_t to_shared, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          to_shared),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
      : "memory");
}

// The same of what is read once (drop_first).
__device__ inline void copy_bulk_once(uint32_t to_shared, const void* from, uint32_t bytes,
                                      uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], %4;" ::"r"(to_shared),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier), "l"(drop_first())
      : "memory");
}

// Starts a copy of the rectangle at (x, y) of a map to shared memory (128-byte aligned) that counts for the
// barrier, whole even where it reaches over the edge. map: a kernel's parameter.
__device__ inline void copy_rectangle(uint32_t to_shared, const CUtensorMap& map, int x, int y,
                                      uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(to_shared),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

// The same of a map of three dimensions.
__device__ inline void copy_box(uint32_t to_shared, const CUtensorMap& map, int x, int y, int z,
                                uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4}], [%5];" ::"r"(to_shared),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

// The same of what is read once (drop_first).
__device__ inline void copy_rectangle_once(uint32_t to_shared, const CUtensorMap& map, int x, int y,
                                           uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, %3}], [%4], %5;" ::"r"(to_shared),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "l"(drop_first())
      : "memory");
}

// Starts to bring a map to where copies look for it.
__device__ inline void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Starts to bring memory (address and size multiples of 16) into the second-level cache.
__device__ inline void prefetch_bulk(const void* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}

// What other threads have written to shared memory, as seen before the call, is seen by the tensor cores
// after it.
__device__ inline void show_to_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// All threads of all blocks of the cluster; what they wrote before is seen after.
__device__ inline void synchronize_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
// The same, but publishes no writes, and so waits for no stores: when all have begun, or have used what they
// read from others.
__device__ inline void leave_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ inline uint32_t rank_in_cluster() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// The same place in the shared memory of another block of the cluster.
__device__ inline uint32_t address_in(uint32_t shared, uint32_t rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}
__device__ inline void store_to_cluster(uint32_t address, const float4& v) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(address), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}
// Stores to the shared memory of a block of the cluster, which counts the bytes for its barrier.
__device__ inline void send_to_cluster(uint32_t address, float v, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(address),
               "f"(v), "r"(barrier)
               : "memory");
}
__device__ inline void send_to_cluster(uint32_t address, float2 v, uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];" ::"r"(address),
      "f"(v.x), "f"(v.y), "r"(barrier)
      : "memory");
}
__device__ inline float4 load_from_cluster(uint32_t address) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// Moves registers between the warpgroups of a block, by all threads of one.
template <int kRegisters>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace shoal::ops::cuda
