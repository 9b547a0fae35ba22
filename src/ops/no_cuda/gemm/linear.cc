#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void linear(Context&, TensorView, const PackedMatrix&, TensorView, const Epilogue&) { unavailable("linear"); }
void linear_swiglu(Context&, TensorView, const PackedMatrix&, TensorView) { unavailable("linear_swiglu"); }
void norm_linear(Context&, TensorView, const RmsNorm&, const PackedMatrix&, TensorView, TensorView) {
  unavailable("norm_linear");
}
void norm_swiglu(Context&, TensorView, const RmsNorm&, const PackedMatrix&, TensorView, TensorView) {
  unavailable("norm_swiglu");
}

}  // namespace shoal::ops::cuda
