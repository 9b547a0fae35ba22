#include "ops/cpu/sequence/sequence_kernels.h"

#include <cmath>

#include "ops/cpu_features.h"

namespace shoal::ops {

const SequenceKernels& sequence_kernels() {
#if defined(__x86_64__)
  const CpuIsa isa = cpu_isa();
  if (isa >= CpuIsa::avx512) return cpu::sequence_kernels_avx512();
  if (isa >= CpuIsa::avx2) return cpu::sequence_kernels_avx2();
#endif
  return cpu::sequence_kernels_portable();
}

float cpu::sine_of_large(float x) { return static_cast<float>(std::sin(static_cast<double>(x))); }

}  // namespace shoal::ops
