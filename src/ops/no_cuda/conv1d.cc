#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void causal_conv1d(Context&, const ConvInput&, const PackedMatrix&, int64_t, TensorView, const Epilogue&) {
  unavailable("causal_conv1d");
}
void residual_unit(Context&, TensorView, const ConvRows&, const ConvHistory&, const ResidualConvs&) {
  unavailable("residual_unit");
}
void depthwise_conv1d(Context&, const ConvInput&, TensorView, TensorView, TensorView) {
  unavailable("depthwise_conv1d");
}

}  // namespace shoal::ops::cuda
