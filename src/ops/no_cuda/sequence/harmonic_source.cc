#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void harmonic_source(Context&, const HarmonicSource&, TensorView, const Segments&, const SourceNoise&,
                     TensorView) {
  unavailable("harmonic_source");
}

}  // namespace shoal::ops::cuda
