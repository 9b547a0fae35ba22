// The matrix ops by definition, in double, one loop per index: the oracles of the fast ones.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::ops::ref {

using Values = std::vector<double>;

// y[row][n] = bias[n] + sum_k x[row][k] w[n][k].   x: [rows, depth], w: [outputs, depth], bias: [outputs] or
// empty.
Values linear(const Values& x, const Values& w, const Values& bias, int64_t depth);

// Weights of 4 bits, [outputs, depth]: minimum + scale * integer. nibbles: two a byte, the first in the low
// bits, rows of depth / 2 bytes rounded up; scales, minima: [outputs, groups], each of `group` neighbouring
// inputs, the last perhaps of fewer.
Values int4_weights(const std::vector<uint8_t>& nibbles, const Values& scales, const Values& minima,
                    int64_t depth, int64_t group);

double gelu(double x);
double gelu_tanh(double x);
double silu(double x);
double snake(double x, double alpha);

// A kernel as PyTorch stores it.
struct Kernel {
  Values weight;  // [first, second, size]; conv: [out, in / groups, size]; transposed: [in, out, size]
  Values bias;    // [out] or empty
  int64_t first = 0, second = 0, size = 0;
};

// Convolution of zero-padded samples, x: [frames, in] -> [frames / stride, out]; dilation and stride not both
// above 1. Left padding (size - 1) * dilation + 1 - stride, none on the right (dac/MODEL.md, Blocks).
Values causal_conv1d(const Values& x, const Kernel& kernel, int64_t stride, int64_t dilation);

// x: [frames, in] -> [frames * stride, out], the tail of size - stride samples cropped (dac/MODEL.md,
// Blocks).
Values causal_conv_transpose1d(const Values& x, const Kernel& kernel, int64_t stride);

// One kernel per channel: weight [channels, 1, size].
Values depthwise_conv1d(const Values& x, const Kernel& kernel);

}  // namespace shoal::ops::ref
