#include "ops/cpu/gemm/matrix_epilogue.h"

#include <cmath>

#include "ops/cpu/kernels/vector_kernels.h"

namespace shoal::ops::cpu {
namespace {

void activate(Activation activation, float* v, int64_t count) {
  if (activation == Activation::gelu) vector_kernels().gelu(v, v, count);
  if (activation == Activation::gelu_tanh) vector_kernels().gelu_tanh(v, v, count);
  if (activation == Activation::tanh)
    for (int64_t i = 0; i < count; ++i) v[i] = std::tanh(v[i]);
}

}  // namespace

void finish_rows(float* sums, int64_t stride, const FinishedBlock& block, const PackedMatrix& weight,
                 const Epilogue& epilogue) {
  const VectorKernels& kernels = vector_kernels();
  FinishedRows rows{.sums = sums,
                    .sums_stride = stride,
                    .rows = block.rows,
                    .count = block.count,
                    .bias = weight.bias.empty() ? nullptr : weight.bias.as<float>() + block.first,
                    .scale = nullptr,
                    .accumulate = false,
                    .y = sums,
                    .y_stride = stride};
  if (epilogue.activation != Activation::none) {
    kernels.finish_rows(rows);
    for (int64_t row = 0; row < block.rows; ++row)
      activate(epilogue.activation, sums + row * stride, block.count);
    rows.bias = nullptr;
  }
  rows.scale = epilogue.scale.empty() ? nullptr : epilogue.scale.as<float>() + block.first;
  rows.accumulate = epilogue.accumulate;
  rows.y = block.y;
  rows.y_stride = block.y_stride;
  kernels.finish_rows(rows);
}

void finish_swiglu_row(const float* gate, const float* up, int64_t count, float* y) {
  vector_kernels().swiglu(gate, up, y, count);
}

}  // namespace shoal::ops::cpu
