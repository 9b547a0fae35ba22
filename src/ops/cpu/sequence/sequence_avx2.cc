#if defined(__x86_64__)

#include "ops/cpu/sequence/sequence_table.h"
#include "ops/cpu/simd/vector16_avx2.h"

namespace shoal::ops::cpu {

const SequenceKernels& sequence_kernels_avx2() {
  static constexpr SequenceKernels kKernels = make_sequence_kernels<Vector16<Avx2>>();
  return kKernels;
}

}  // namespace shoal::ops::cpu

#endif
