// What this machine can do: the ceilings that every benchmark figure is set beside.
#pragma once

#include <cstdint>
#include <string>

#include "base/thread_team.h"
#include "ops/context.h"

namespace shoal::bench {

// Speeds of `device`; 0: not measured.
struct MachineLimits {
  std::string device;  // "cpu", "cuda:0 (NVIDIA H200)"
  // Of a GPU; empty, 0.
  std::string compute_capability;  // "9.0"
  int64_t device_memory_bytes = 0;
  std::string cpu;  // model name as the system gives it
  std::string isa;  // kernels in use: "avx512_bf16", "amx", ...
  int threads = 0;
  double read_gb_per_s = 0;     // sum-read of a buffer far larger than the caches, all threads
  double f32_gflop_per_s = 0;   // matrix product that fits the caches, all threads; not measured on a GPU
  double bf16_gflop_per_s = 0;  // the same with bf16 weights; GPU: out of registers (ops/device_speed.h)
};

// Takes about two seconds. On a GPU it takes memory of it for the time, and throws
// Error(resource_exhausted) where that is refused.
MachineLimits measure_machine(ops::Context& ctx);

// What share of a limit was reached; 0 where the limit is not known.
double share_of(double reached, double limit);

// High-water mark of this process's resident memory since the last reset, bytes.
int64_t peak_resident_bytes();
// Restarts the mark at the present resident memory.
void reset_peak_resident();
// Resident memory now, bytes.
int64_t resident_bytes();

}  // namespace shoal::bench
