#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void short_stft(Context&, const ShortStft&, TensorView, const Segments&, TensorView) {
  unavailable("short_stft");
}
void inverse_short_stft(Context&, const ShortStft&, TensorView, const Segments&, TensorView) {
  unavailable("inverse_short_stft");
}

}  // namespace shoal::ops::cuda
