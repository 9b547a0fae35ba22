// Weights as the integers of 8 and 4 bits, and the floats of 8, that products read, made ahead of loading.
#pragma once

#include "base/thread_team.h"
#include "tensor/tensor.h"

namespace shoal::ops {

// How far rounded weights are from the weights.
struct RoundingError {
  double difference = 0, weights = 0;  // sums of squares
  double worst = 0;                    // share() of the worst output

  // The norm of the difference as a share of the norm of the weights.
  double share() const;
  void add(const RoundingError& other);
};

// weight: f32, bf16 or f16 [outputs, depth], rows may be strided; integers: i8 of the same shape; scales: f32
// [outputs], what the integers of an output count in. Results are dense, all is in host memory. The largest
// magnitude of an output becomes 127, the others the nearest integer (ties to even), as pack_matrix makes
// them of floats. A pure function of the weights. Throws Error(corrupt_file) for a weight that is not finite.
RoundingError round_to_int8(ThreadTeam& team, TensorView weight, TensorView integers, TensorView scales);

// The same in e4m3: values is f8, and the largest magnitude of an output becomes 448.
RoundingError round_to_fp8(ThreadTeam& team, TensorView weight, TensorView values, TensorView scales);

// The kernel of a convolution in i8, dense [outputs, inputs, taps] (axis 0) or, of a transposed one, [inputs,
// outputs, taps] (axis 1): all weights of an output share a scale. integers: of the same shape; scales: f32
// [outputs].
RoundingError round_kernel_to_int8(ThreadTeam& team, TensorView kernel, int axis, TensorView integers,
                                   TensorView scales);

// The weights that integers with scales are where a GPU multiplies them by operands of `dtype` (f32, bf16 or
// f16): integer times scale; in 16 bits the scale is rounded first, and the product again. integers: dense i8
// of any shape, scales: f32, one for each index of `axis` (0 or 1).
Tensor widen_int8(ThreadTeam& team, TensorView integers, TensorView scales, int axis, DType dtype);

// As round_to_int8 in 4 bits: groups of `group` (32, 64 or 128) neighbouring inputs of an output, the last
// one perhaps shorter, share a scale and a minimum, and a weight is minimum + scale * integer. nibbles: u8
// [outputs, depth / 2 rounded up], two a byte, the first in the low bits, 0 behind the last; scales and
// minima: bf16 [outputs, groups]. Scale and minimum are those with the least sum of squared differences that
// a search finds (cpu/gemm/nibbles.h), as pack_matrix makes them of floats.
struct NibbleMatrix {
  TensorView nibbles, scales, minima;
};
RoundingError round_to_int4(ThreadTeam& team, TensorView weight, int64_t group, const NibbleMatrix& to);

}  // namespace shoal::ops
