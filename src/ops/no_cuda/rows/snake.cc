#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void snake(Context&, TensorView, TensorView, TensorView) { unavailable("snake"); }

}  // namespace shoal::ops::cuda
