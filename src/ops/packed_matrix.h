// Weight matrices in the layout that the backend's matrix kernels stream.
#pragma once

#include <cstdint>

#include "ops/context.h"
#include "tensor/formats.h"
#include "tensor/tensor.h"

namespace shoal::ops {

// y[n] = sum over taps and k of w[n][tap][k] * x[tap][k] (+ bias[n]). A linear layer has one tap; a causal
// convolution has one per kernel position. Rows are outputs. Made once at load, immutable afterwards.
//
// The order of a product's sum depends only on (format, instruction set, taps, depth): never on how many
// input rows are computed together, on the thread, or on the neighbouring outputs. So a row gives the same
// bits alone and in any batch (docs/ARCHITECTURE.md, Determinism).
struct PackedMatrix {
  MatrixFormat format;
  int64_t outputs = 0;  // N
  int64_t taps = 1;
  int64_t depth = 0;     // K: inputs per tap
  bool is_pair = false;  // made by pack_gate_up
  Tensor storage;        // backend's own layout
  Tensor scales;         // of i8 and f8 weights: one for each output, in the backend's order; or empty.
                         // Those of u4 weights are in the storage.
  Tensor bias;           // f32 [outputs], or empty
  int64_t bytes() const { return storage.bytes() + scales.bytes() + bias.bytes(); }
};

// A matrix as a checkpoint has it: f32, bf16 or f16; or what round_weights.h makes of them: i8 or f8 with
// scales, f32 [outputs]; or u8, two of 4 bits a byte [outputs, depth / 2 rounded up], with scales and minima,
// bf16 [outputs, groups].
struct StoredMatrix {
  StoredMatrix(TensorView values, TensorView scales_of_outputs = {})  // NOLINT(google-explicit-constructor)
      : weight(values), scales(scales_of_outputs) {}
  StoredMatrix(const Tensor& values) : weight(values) {}  // NOLINT(google-explicit-constructor)
  StoredMatrix(TensorView nibbles, TensorView scales_of_groups, TensorView minima_of_groups, int64_t inputs)
      : weight(nibbles), scales(scales_of_groups), minima(minima_of_groups), nibbles_depth(inputs) {}

  int64_t depth() const { return nibbles_depth > 0 ? nibbles_depth : weight.dim(-1); }

  TensorView weight, scales, minima;
  int64_t nibbles_depth = 0;
};

// weight: [outputs, depth], or [outputs, taps, depth]; rows may be strided. bias: f32/bf16/f16 [outputs] or
// an empty view. format: one that the device multiplies (device_state.h), another throws Error(unsupported),
// as does a matrix of 8 or 4 bits in another format than its own, and one of several taps except i8 on a GPU;
// values are rounded to nearest even. Floats become i8, f8 and u4 by the rules of round_weights.h (f8, u4 and
// convolutions in i8 on a GPU with its errors), so a matrix and what those make of it give equal bits.
// Sources are in host memory, the result is in that of the context's device. Sources without memory
// (Tensor::sized) give a result without memory.
PackedMatrix pack_matrix(Context& ctx, const StoredMatrix& matrix, TensorView bias, MatrixFormat format);

// Several matrices of equal depth stacked along their outputs (wq, wk, wv stored apart).
PackedMatrix pack_stacked(Context& ctx, std::span<const StoredMatrix> matrices, TensorView bias,
                          MatrixFormat format);
PackedMatrix pack_stacked(Context& ctx, std::span<const TensorView> weights, TensorView bias,
                          MatrixFormat format);

// SwiGLU's pair: gate = w1, up = w3, both [hidden, depth]; used by linear_swiglu only. outputs == hidden.
PackedMatrix pack_gate_up(Context& ctx, const StoredMatrix& gate, const StoredMatrix& up,
                          MatrixFormat format);

// Convolutions as matrices over channels-last rows; every one becomes a stride-1 causal convolution
// (conv1d.h). Of integers the scales are those of the channels that come out, [out].
// - weight [out, in, k] as PyTorch stores it: taps = k, depth = in.
PackedMatrix pack_conv1d(Context& ctx, const StoredMatrix& kernel, TensorView bias, MatrixFormat format);
// - stride s, k a multiple of s: rows [frames, in] are viewed as [frames / s, s * in]; taps = k / s, depth =
// s * in.
PackedMatrix pack_strided_conv1d(Context& ctx, const StoredMatrix& kernel, TensorView bias, int64_t stride,
                                 MatrixFormat format);
// - transposed, weight [in, out, k], stride s, k a multiple of s: taps = k / s, outputs = s * out; the result
// [frames, s * out]
//   is the memory of [frames * s, out]. The bias is repeated s times. (dac/MODEL.md, Blocks)
PackedMatrix pack_transposed_conv1d(Context& ctx, const StoredMatrix& kernel, TensorView bias, int64_t stride,
                                    MatrixFormat format);

}  // namespace shoal::ops
