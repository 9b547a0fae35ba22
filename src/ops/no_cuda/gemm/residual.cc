#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

bool can_add_later(const Context&) { return false; }
bool linear_sums(Context&, TensorView, const PackedMatrix&, TensorView) { unavailable("linear_sums"); }
void add_sums(Context&, TensorView, TensorView) { unavailable("add_sums"); }

}  // namespace shoal::ops::cuda
