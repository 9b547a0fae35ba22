#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

bool has_norm_attend(Context&, const PackedMatrix&, int64_t, const HeadLayout&, const BatchPlan&,
                     const KvLayer&) {
  return false;
}
void norm_attend(Context&, TensorView, const RmsNorm&, const PackedMatrix&, TensorView, const AttentionPlan&,
                 const QkNorm&, const BatchPlan&, const KvLayer&, TensorView) {
  unavailable("norm_attend");
}

}  // namespace shoal::ops::cuda
