// Matrix products (GEMM) with their usual prologues and epilogues.
#pragma once

#include "ops/context.h"
#include "ops/packed_matrix.h"

namespace shoal::ops {

// gelu: exact, 0.5 z (1 + erf(z / sqrt 2)); gelu_tanh: 0.5 z (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3))).
enum class Activation : uint8_t { none, gelu, gelu_tanh, tanh };

// What happens to a product before it is stored: y = act(product + bias), or y += scale * act(product +
// bias).
struct Epilogue {
  Activation activation = Activation::none;
  bool accumulate = false;  // add to the values in y
  TensorView scale = {};    // f32 [outputs] per-output factor (layer scale); empty means 1
};

// The dtype in which a product reads its input: that of its operands (tensor/formats.h). A producer that
// writes it directly (linear_swiglu, attend) saves a pass. On the CPU f32: its products round internally.
DType product_input(const Context& ctx, const PackedMatrix& weight);

// x: f32 or product_input [rows, depth] (rows may be strided), y: f32 [rows, outputs] (rows may be strided);
// x and y do not overlap. x is rounded to the operand's dtype first and sums are f32.
void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y,
            const Epilogue& epilogue = {});

// y = silu(x gate^T) * (x up^T).  x: as in linear, y: f32, or the dtype that the next product reads, [rows,
// hidden].
void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y);

// The norm before a product (norm.h): f32 weight [depth].
struct RmsNorm {
  TensorView weight;
  float eps = 0;
};

// linear and linear_swiglu of rms_norm(x).  x: f32 [rows, depth]. The same values as one after the other.
void norm_linear(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& weight, TensorView y);
void norm_swiglu(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& gate_up, TensorView y);

}  // namespace shoal::ops
