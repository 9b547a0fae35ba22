// What this machine can do: the ceilings that every benchmark figure is set beside.
#pragma once

#include <cstdint>
#include <string>

#include "base/thread_team.h"
#include "ops/context.h"

namespace shoal::bench {

struct MachineLimits {
  std::string cpu;  // model name as the system gives it
  std::string isa;  // kernels in use: "avx512_bf16", "amx", ...
  int threads = 0;
  double read_gb_per_s = 0;     // sum-read of a buffer far larger than the caches, all threads
  double f32_gflop_per_s = 0;   // matrix product that fits the caches, all threads
  double bf16_gflop_per_s = 0;  // the same with bf16 weights
};

// Takes about two seconds.
MachineLimits measure_machine(ops::Context& ctx);

// Seconds since an arbitrary start, from a steady clock.
double now_s();

// High-water mark of this process's resident memory since the last reset, bytes.
int64_t peak_resident_bytes();
// Starts the mark anew from what is resident now.
void reset_peak_resident();
// Resident memory now, bytes.
int64_t resident_bytes();

}  // namespace shoal::bench
