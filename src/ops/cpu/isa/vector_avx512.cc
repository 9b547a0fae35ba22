#if defined(__x86_64__)

// g++ 12's own intrinsics start from `__m512i y = y` and warn about it when inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"

#include "ops/cpu/isa/vector_table.h"
#include "ops/cpu/simd/vector16_avx512.h"

namespace shoal::ops::cpu {

const VectorKernels& vector_kernels_avx512() {
  static constexpr VectorKernels kKernels = make_vector_kernels<Vector16<Avx512>>();
  return kKernels;
}

}  // namespace shoal::ops::cpu

#endif
