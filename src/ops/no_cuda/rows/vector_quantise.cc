#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void nearest_code(Context&, TensorView, TensorView, TensorView) { unavailable("nearest_code"); }

}  // namespace shoal::ops::cuda
