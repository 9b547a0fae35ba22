#include "ops/cpu/isa/vector_table.h"
#include "ops/cpu/simd/vector16_portable.h"

namespace shoal::ops::cpu {

const VectorKernels& vector_kernels_portable() {
  static constexpr VectorKernels kKernels = make_vector_kernels<Vector16<Portable>>();
  return kKernels;
}

}  // namespace shoal::ops::cpu
