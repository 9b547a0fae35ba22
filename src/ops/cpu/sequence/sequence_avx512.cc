#if defined(__x86_64__)

// g++ 12's own intrinsics start from `__m512i y = y` and warn about it when inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"

#include "ops/cpu/sequence/sequence_table.h"
#include "ops/cpu/simd/vector16_avx512.h"

namespace shoal::ops::cpu {

const SequenceKernels& sequence_kernels_avx512() {
  static constexpr SequenceKernels kKernels = make_sequence_kernels<Vector16<Avx512>>();
  return kKernels;
}

}  // namespace shoal::ops::cpu

#endif
