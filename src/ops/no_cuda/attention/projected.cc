#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {

bool norm_attend(Context&, TensorView, const RmsNorm&, const PackedMatrix&, TensorView, const AttentionPlan&,
                 const QkNorm&, const BatchPlan&, const KvLayer&, TensorView) {
  return false;
}

}  // namespace shoal::ops::cuda
