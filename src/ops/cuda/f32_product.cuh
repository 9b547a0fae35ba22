// y = epilogue(x W^T) in f32 on the ordinary units, for parity with other implementations and for f32 models.
// One order of sums in both kernels (matrix_layout.cuh): fused multiply-adds by rising input within a
// segment, starting from zero, then the segments one after the other.
#pragma once

#include "ops/cuda/products.h"

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
    if (taps.first_rows) row = taps.first_rows[row] + s * taps.dilation;
    return x + row * x_stride;
  }
  __device__ const float* weight_of(int s) const {
    return several_taps ? weight + static_cast<int64_t>(s) * depth * columns : weight;
  }
};

}  // namespace shoal::ops::cuda
