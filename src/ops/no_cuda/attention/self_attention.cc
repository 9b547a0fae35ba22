#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void self_attention(Context&, TensorView, int64_t, const Segments&, TensorView) {
  unavailable("self_attention");
}

}  // namespace shoal::ops::cuda
