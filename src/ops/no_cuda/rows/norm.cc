#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void rms_norm(Context&, TensorView, TensorView, float, TensorView) { unavailable("rms_norm"); }
void layer_norm(Context&, TensorView, TensorView, TensorView, float, TensorView) {
  unavailable("layer_norm");
}
void layer_norm_by_row(Context&, TensorView, TensorView, TensorView, TensorView, float, TensorView) {
  unavailable("layer_norm_by_row");
}

}  // namespace shoal::ops::cuda
