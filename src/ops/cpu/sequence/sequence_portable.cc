#include "ops/cpu/sequence/sequence_table.h"
#include "ops/cpu/simd/vector16_portable.h"

namespace shoal::ops::cpu {

const SequenceKernels& sequence_kernels_portable() {
  static constexpr SequenceKernels kKernels = make_sequence_kernels<Vector16<Portable>>();
  return kKernels;
}

}  // namespace shoal::ops::cpu
