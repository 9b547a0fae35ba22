#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

Tensor pack(Context&, const PackRequest&, TensorView) { unavailable("pack"); }

}  // namespace shoal::ops::cuda
