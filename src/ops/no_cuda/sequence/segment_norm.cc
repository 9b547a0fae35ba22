#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void adain(Context&, TensorView, const Segments&, TensorView, float, const SegmentActivation&, TensorView) {
  unavailable("adain");
}
void segment_sum(Context&, std::span<const TensorView>, const Segments&, float, float, TensorView) {
  unavailable("segment_sum");
}
void mirror_first_rows(Context&, const Segments&, TensorView) { unavailable("mirror_first_rows"); }
void double_rows(Context&, TensorView, const Segments&, TensorView, TensorView, TensorView) {
  unavailable("double_rows");
}

}  // namespace shoal::ops::cuda
