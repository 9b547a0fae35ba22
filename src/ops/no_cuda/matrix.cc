#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

[[noreturn]] void unavailable(const char* op) {
  fail(ErrorCode::unavailable, op, ": this build has no CUDA backend");
}

}  // namespace

Tensor pack(Context&, const PackRequest&) { unavailable("pack"); }
void linear(Context&, TensorView, const PackedMatrix&, TensorView, const Epilogue&) { unavailable("linear"); }
void linear_swiglu(Context&, TensorView, const PackedMatrix&, TensorView) { unavailable("linear_swiglu"); }
void causal_conv1d(Context&, const ConvInput&, const PackedMatrix&, int64_t, TensorView, const Epilogue&) {
  unavailable("causal_conv1d");
}
void depthwise_conv1d(Context&, const ConvInput&, TensorView, TensorView, TensorView) {
  unavailable("depthwise_conv1d");
}

}  // namespace shoal::ops::cuda
