// The matrix products behind the ops, and their operands.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

#include "ops/cuda/gemm/operands/matrix_layout.cuh"
#include "ops/residual.h"

namespace shoal::ops::cuda {

// What becomes of the sums (product_epilogue.cuh): y = act(sum + bias), times scale, or added to y. A paired
// matrix: y = silu(gate sum) * (up sum).
struct ProductEpilogue {
  // Constants: kernels read them before their inputs are there.
  const float* bias = nullptr;   // [outputs], or null
  const float* scale = nullptr;  // [outputs], or null
  Activation activation = Activation::none;
  bool accumulate = false;
  void* y = nullptr;     // [rows, outputs]
  int64_t y_stride = 0;  // elements
  DType y_dtype = DType::f32;
};

// Where the taps of a convolution find their rows: tap j of row t multiplies row first_rows[t] + j * dilation
// of x, or t + j * dilation.
struct TapRows {
  const int32_t* first_rows = nullptr;  // [rows] in device memory; null: row t starts at row t
  int64_t dilation = 1;
};

struct Product {
  MatrixShape shape;
  MatrixFormat format = DType::bf16;
  const void* weight = nullptr;   // the layout of matrix_layout.cuh
  const float* scales = nullptr;  // of i8 and f8 weights, by row of tiles and output in it
  // Of format.operand. In 16 bits: its rows are 16-byte aligned, and after `depth` each has zeros up to a
  // multiple of 8 inputs. In f32: any alignment.
  const void* x = nullptr;
  int64_t x_stride = 0;  // elements
  int64_t rows = 0;      // of y
  TapRows taps;
  ProductEpilogue epilogue;
};

// Of bf16, f16, i8, f8 and u4.
inline TileForm form_of(const MatrixFormat& format) {
  if (has_output_scales(format.weights)) return {.bits = 8};
  if (format.weights != DType::u4) return {};
  return {.bits = 4, .shift = format.group == 32 ? 0 : format.group == 64 ? 1 : 2};
}
// Weights of fewer bits than their operands.
inline bool is_narrow(const Product& product) { return product.format.weights != product.format.operand; }

// How many rows skinny_product (skinny_product.h) takes at most.
constexpr int64_t kSkinnyRows = 16;

// x in the form that a product reads: [rows, depth rounded up to a multiple of 8] of `dtype`, dense, in
// ctx.workspace, normed (then x is f32) when there is a norm. x: f32, bf16 or f16 [rows, depth], rows may be
// strided. sums: added to x first, if there is a norm.
TensorView product_operand(Context& ctx, TensorView x, DType dtype, const RmsNorm* norm = nullptr,
                           TensorView sums = {});
// Whether products whose operands are of `dtype` read x as it is.
bool is_product_operand(TensorView x, DType dtype);

// A product of 16-bit weights that gives the same bits as this one of narrow weights. They are widened into
// ctx.workspace; the next kernel that is started must be the product's.
Product widened(Context& ctx, Product product);

// The sums to y, with the matrix's bias if it has one.
inline ProductEpilogue into(TensorView y, const PackedMatrix& weight, const Epilogue& epilogue = {}) {
  return {.bias = weight.bias.empty() ? nullptr : weight.bias.as<float>(),
          .scale = epilogue.scale.empty() ? nullptr : epilogue.scale.as<float>(),
          .activation = epilogue.activation,
          .accumulate = epilogue.accumulate,
          .y = y.data(),
          .y_stride = y.stride(0),
          .y_dtype = y.dtype()};
}

inline const float* scales_of(const PackedMatrix& matrix) {
  return matrix.scales.empty() ? nullptr : matrix.scales.as<float>();
}

// The shape of a packed matrix.
inline MatrixShape shape_of(const PackedMatrix& matrix, bool paired = false) {
  return {.outputs = matrix.outputs, .taps = matrix.taps, .depth = matrix.depth, .paired = paired};
}

// By a packed matrix that is not paired; the rows that it multiplies are still to be given.
inline Product product_by(const PackedMatrix& matrix, int64_t rows = 0,
                          const ProductEpilogue& epilogue = {}) {
  return {.shape = shape_of(matrix),
          .format = matrix.format,
          .weight = matrix.storage.view().data(),
          .scales = scales_of(matrix),
          .rows = rows,
          .epilogue = epilogue};
}
inline Product with_input(Product product, TensorView x) {
  product.x = x.data();
  product.x_stride = x.stride(0);
  return product;
}

}  // namespace shoal::ops::cuda
