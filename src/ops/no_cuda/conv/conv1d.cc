#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void causal_conv1d(Context&, const ConvInput&, const PackedMatrix&, int64_t, TensorView, const Epilogue&) {
  unavailable("causal_conv1d");
}
void valid_conv1d(Context&, TensorView, const PackedMatrix&, int64_t, TensorView, const Epilogue&) {
  unavailable("valid_conv1d");
}
bool residual_unit_is_apart(const Context&, const ResidualConvs&, int64_t) { unavailable("residual_unit"); }
void residual_unit(Context&, TensorView, const ConvRows&, const ConvHistory&, const ResidualConvs&,
                   TensorView) {
  unavailable("residual_unit");
}
bool makes_ready(const Context&, const ResidualConvs&, int64_t, const ConvReader&) {
  unavailable("residual_unit");
}
void residual_unit_for(Context&, TensorView, const ConvRows&, const ConvHistory&, const ResidualConvs&,
                       const ConvReader&, TensorView) {
  unavailable("residual_unit");
}
void depthwise_conv1d(Context&, const ConvInput&, TensorView, TensorView, TensorView) {
  unavailable("depthwise_conv1d");
}

}  // namespace shoal::ops::cuda
