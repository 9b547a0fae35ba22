#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void draw_tokens(Context&, TensorView, const DrawTable&, const TokenHead&, TensorView) {
  unavailable("draw_tokens");
}
void draw_codes(Context&, TensorView, const DrawTable&, int64_t, TensorView) { unavailable("draw_codes"); }

}  // namespace shoal::ops::cuda
