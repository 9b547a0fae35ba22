#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void snake(Context&, TensorView, TensorView, TensorView) { unavailable("snake"); }
void rms_norm(Context&, TensorView, TensorView, float, TensorView) { unavailable("rms_norm"); }
void layer_norm(Context&, TensorView, TensorView, TensorView, float, TensorView) {
  unavailable("layer_norm");
}
void layer_norm_by_row(Context&, TensorView, TensorView, TensorView, TensorView, float, TensorView) {
  unavailable("layer_norm_by_row");
}
void gather_rows(Context&, TensorView, TensorView, TensorView) { unavailable("gather_rows"); }
void gather_sum(Context&, TensorView, TensorView, TensorView) { unavailable("gather_sum"); }
void embed_columns(Context&, const ColumnEmbedding&, TensorView, TensorView) { unavailable("embed_columns"); }
void nearest_code(Context&, TensorView, TensorView, TensorView) { unavailable("nearest_code"); }

}  // namespace shoal::ops::cuda
