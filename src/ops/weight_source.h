// How the packers read a checkpoint's matrices: every layout we meet is a sum of strides.
#pragma once

#include <span>

#include "base/bf16.h"
#include "ops/packed_matrix.h"

namespace shoal::ops {

// w[n][tap][k] lies at data[start + (n / n_inner) * n_outer_stride + (n % n_inner) * n_inner_stride
//                           + tap * tap_stride
//                           + (k / k_inner) * k_outer_stride + (k % k_inner) * k_inner_stride].
// Strides in elements. The split axes are for strided and transposed convolutions, whose inputs or outputs
// are (phase, channel) pairs.
struct WeightSource {
  const void* data = nullptr;
  // f32, bf16 or f16; i8 or f8, times scales; or u8, two of 4 bits a byte, times scales
  DType dtype = DType::f32;
  int64_t outputs = 0;
  int64_t start = 0;
  int64_t n_inner = 1, n_outer_stride = 0, n_inner_stride = 0;
  int64_t k_inner = 1, k_outer_stride = 0, k_inner_stride = 0;
  int64_t tap_stride = 0;
  const float* scales = nullptr;  // of i8 and f8: output n has that of n % scale_count
  int64_t scale_count = 0;  // fewer than outputs where the phases of a transposed convolution share them
  // Of u8: one for each group of each output. Strides are bytes then, and the other axes are not split.
  const Bf16 *group_scales = nullptr, *minima = nullptr;
  int64_t groups = 0;  // of an output

  bool is_quantised() const { return scales || group_scales; }

  int64_t output_offset(int64_t n) const {
    return start + n / n_inner * n_outer_stride + n % n_inner * n_inner_stride;
  }
  int64_t depth_offset(int64_t k) const {
    return k / k_inner * k_outer_stride + k % k_inner * k_inner_stride;
  }
};

// One matrix to pack: `parts` stacked along the outputs, or, when paired, the gate and the up of a SwiGLU.
struct PackRequest {
  std::span<const WeightSource> parts;
  bool paired = false;
  int64_t outputs = 0;  // of the result: of all parts, or of one of the pair
  int64_t taps = 1;
  int64_t depth = 0;
  DType dtype = DType::f32;    // of the stored result: f32, bf16, i8, u4, or (GPU) f16 and f8
  DType operand = DType::f32;  // what it is multiplied with
  int64_t group = 0;           // of u4

  MatrixFormat format() const { return {dtype, operand, group}; }
};

// Element i of f32, bf16 or f16 memory.
float load_float(const void* data, DType dtype, int64_t i);

}  // namespace shoal::ops
