#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void gather_rows(Context&, TensorView, TensorView, TensorView) { unavailable("gather_rows"); }
void gather_sum(Context&, TensorView, TensorView, TensorView) { unavailable("gather_sum"); }
void embed_columns(Context&, const ColumnEmbedding&, TensorView, TensorView) { unavailable("embed_columns"); }

}  // namespace shoal::ops::cuda
