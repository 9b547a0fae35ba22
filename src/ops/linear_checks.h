// Argument checks of the products of linear.h and residual.h.
#pragma once

#include "ops/linear.h"

namespace shoal::ops {

// f32, or `narrow`.
inline void check_rows(const char* op, TensorView x, int64_t width, const char* name,
                       DType narrow = DType::f32) {
  CHECK(x.rank() == 2 && (x.dtype() == DType::f32 || x.dtype() == narrow) && x.dim(1) == width, op, ": ",
        name, " is ", x.shape(), " ", name_of(x.dtype()), ", expected F32 or ", name_of(narrow), " [rows, ",
        width, "]");
}

inline void check_one_tap(const char* op, const PackedMatrix& weight, TensorView x, TensorView y) {
  CHECK(weight.taps == 1, op, ": the matrix has ", weight.taps, " taps");
  CHECK(x.dim(0) == y.dim(0), op, ": x ", x.shape(), ", y ", y.shape());
}

inline void check_linear(const char* op, const Context& ctx, TensorView x, const PackedMatrix& weight,
                         TensorView y) {
  check_rows(op, x, weight.depth, "x", product_input(ctx, weight));
  check_rows(op, y, weight.outputs, "y");
  check_one_tap(op, weight, x, y);
}

inline void check_norm(const char* op, const RmsNorm& norm, int64_t depth) {
  CHECK(norm.weight.dtype() == DType::f32 && norm.weight.shape() == Shape{depth}, op, ": norm weight is ",
        name_of(norm.weight.dtype()), " ", norm.weight.shape(), ", expected F32 [", depth, "]");
}

// linear_swiglu may write f32, or on a GPU 16 bits, which are the next product's input.
inline void check_swiglu(const char* op, const Context& ctx, const PackedMatrix& gate_up, TensorView y) {
  CHECK(gate_up.is_pair, op, ": a matrix that pack_gate_up has not made");
  const bool narrow = !on_cpu(ctx) && (y.dtype() == DType::bf16 || y.dtype() == DType::f16);
  check_rows(op, y, gate_up.outputs, "y", narrow ? y.dtype() : DType::f32);
}

inline void check_norm_linear(TensorView x, const RmsNorm& norm, const PackedMatrix& weight, TensorView y) {
  constexpr const char* kOp = "norm_linear";
  check_rows(kOp, x, weight.depth, "x");
  check_rows(kOp, y, weight.outputs, "y");
  check_one_tap(kOp, weight, x, y);
  check_norm(kOp, norm, weight.depth);
}

inline void check_norm_swiglu(const Context& ctx, TensorView x, const RmsNorm& norm,
                              const PackedMatrix& gate_up, TensorView y) {
  constexpr const char* kOp = "norm_swiglu";
  check_rows(kOp, x, gate_up.depth, "x");
  check_swiglu(kOp, ctx, gate_up, y);
  check_one_tap(kOp, gate_up, x, y);
  check_norm(kOp, norm, gate_up.depth);
}

}  // namespace shoal::ops
