#include "ops/cpu/kernels/vector_kernels.h"

#include <cmath>

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

// The library's sine reduces any double exactly; rounding its square to f32 hides the last bits in which
// libraries may differ.
float cpu::sin_squared_of_large(float x) {
  const double s = std::sin(static_cast<double>(x));
  return static_cast<float>(s * s);
}

}  // namespace shoal::ops
