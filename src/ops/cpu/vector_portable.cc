#include "ops/cpu/vector16_portable.h"
#include "ops/cpu/vector_table.h"

namespace shoal::ops::cpu {

const VectorKernels& vector_kernels_portable() {
  static constexpr VectorKernels kKernels = make_vector_kernels<Vector16<Portable>>();
  return kKernels;
}

}  // namespace shoal::ops::cpu
