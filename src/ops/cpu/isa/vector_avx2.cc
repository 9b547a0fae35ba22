#if defined(__x86_64__)

#include "ops/cpu/isa/vector_table.h"
#include "ops/cpu/simd/vector16_avx2.h"

namespace shoal::ops::cpu {

const VectorKernels& vector_kernels_avx2() {
  static constexpr VectorKernels kKernels = make_vector_kernels<Vector16<Avx2>>();
  return kKernels;
}

}  // namespace shoal::ops::cpu

#endif
