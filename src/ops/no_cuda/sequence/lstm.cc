#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

Tensor pack_recurrent(Context&, const LstmDirection&, const LstmDirection&, DType) {
  unavailable("pack_lstm");
}
void bidirectional_lstm(Context&, TensorView, const Segments&, const PackedLstm&, TensorView) {
  unavailable("bidirectional_lstm");
}

}  // namespace shoal::ops::cuda
