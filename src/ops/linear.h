// Matrix products with their usual company.
#pragma once

#include "ops/context.h"
#include "ops/packed_matrix.h"

namespace shoal::ops {

enum class Activation : uint8_t { none, gelu /* exact: erf */, tanh };

// What happens to a product before it is stored: y = act(product + bias), or y += scale * act(product +
// bias).
struct Epilogue {
  Activation activation = Activation::none;
  bool accumulate = false;  // add to what y holds
  TensorView scale = {};    // f32 [outputs] per-output factor (layer scale); empty means 1
};

// x: f32 [rows, depth] (rows may be strided), y: f32 [rows, outputs] (rows may be strided); x and y do not
// overlap. bf16 weights: x is rounded to bf16 first and sums are f32.
void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y,
            const Epilogue& epilogue = {});

// y = silu(x gate^T) * (x up^T).  x: f32 [rows, depth], y: f32 [rows, hidden].
void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y);

}  // namespace shoal::ops
