// y = epilogue(x W^T) in f32, for parity with other implementations and for f32 models: what the kernels for
// ordinary units (f32_product.h) and for tensor cores (tf32_product.h) share. Each kind has one order of sums
// (matrix_layout.cuh).
#pragma once

#include "ops/cuda/gemm/operands/product_epilogue.cuh"
#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

struct F32Arguments {
  const float* x;
  int64_t x_stride, rows;
  TapRows taps;
  const float* weight;
  int64_t columns;  // f32_columns
  int outputs, depth, segments;
  int segment_inputs;  // of one tap, when there is one; with several, a segment is a tap
  bool several_taps, paired;
  ProductEpilogue epilogue;

  // Segment s takes inputs [begin, end) of a tap.
  __device__ int segment_begin(int s) const { return several_taps ? 0 : min(s * segment_inputs, depth); }
  __device__ int segment_end(int s) const {
    return several_taps ? depth : min((s + 1) * segment_inputs, depth);
  }
  // Row `row` as segment s sees it, and the weights of the segment's tap.
  __device__ const float* row_of(int64_t row, int s) const {
    if (taps.first_rows) row = taps.first_rows[row];
    if (several_taps) row += s * taps.dilation;
    return x + row * x_stride;
  }
  __device__ const float* weight_of(int s) const {
    return several_taps ? weight + static_cast<int64_t>(s) * depth * columns : weight;
  }
  // Whether four inputs of a row can be read at once.
  __device__ bool has_vector_rows() const {
    return reinterpret_cast<uintptr_t>(x) % 16 == 0 && x_stride % 4 == 0 && depth % 4 == 0;
  }
};

// Two neighbouring columns of a row, the first of which is even.
__device__ inline void store_two_columns(const F32Arguments& a, int64_t row, int64_t column, float left,
                                         float right) {
  if (a.paired) {
    if (column / 2 < a.outputs) store_swiglu(a.epilogue, row, column / 2, left, right);
    return;
  }
  if (column < a.outputs) store_product(a.epilogue, row, column, left);
  if (column + 1 < a.outputs) store_product(a.epilogue, row, column + 1, right);
}

// Four.
__device__ inline void store_columns(const F32Arguments& a, int64_t row, int64_t column,
                                     const float (&sums)[4]) {
  store_two_columns(a, row, column, sums[0], sums[1]);
  store_two_columns(a, row, column + 2, sums[2], sums[3]);
}

F32Arguments f32_arguments(const Product& product);

}  // namespace shoal::ops::cuda
