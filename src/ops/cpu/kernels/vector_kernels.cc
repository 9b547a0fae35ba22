#include "ops/cpu/kernels/vector_kernels.h"

#include "ops/cpu_features.h"

namespace shoal::ops {

const VectorKernels& vector_kernels() {
#if defined(__x86_64__)
  const CpuIsa isa = cpu_isa();
  if (isa >= CpuIsa::avx512) return cpu::vector_kernels_avx512();
  if (isa >= CpuIsa::avx2) return cpu::vector_kernels_avx2();
#endif
  return cpu::vector_kernels_portable();
}

}  // namespace shoal::ops
