#if defined(__x86_64__)

#include "ops/cpu/vector16_avx2.h"
#include "ops/cpu/vector_table.h"

namespace shoal::ops::cpu {

const VectorKernels& vector_kernels_avx2() {
  static constexpr VectorKernels kKernels = make_vector_kernels<Vector16<Avx2>>();
  return kKernels;
}

}  // namespace shoal::ops::cpu

#endif
