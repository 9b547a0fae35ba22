// The core under linear layers and convolutions: staged rows times a packed matrix, cut into tasks for the
// team.
#pragma once

#include <span>

#include "ops/cpu/gemm/matrix_kernels.h"
#include "ops/cpu/gemm/matrix_layout.h"
#include "ops/linear.h"

namespace shoal::ops::cpu {

// The kernels of the instruction set in use (cpu_isa()).
const MatrixKernels& matrix_kernels();
// Of them those that read weights of this dtype: f32, bf16, i8 or u4.
const ProductKernel& kernel_for(DType weights);

// Consecutive output rows whose input rows are consecutive too.
struct Segment {
  int64_t input_row = 0, output_row = 0, rows = 0;
};

// Input as the kernels read it: element (row, tap, k) at row * row_stride + tap * tap_stride + k.
struct StagedInput {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t row_stride = 0, tap_stride = 0;  // elements
  std::span<const Segment> segments;
  TensorView scales = {};   // of i8 input: f32 [rows, groups of 128]
  TensorView offsets = {};  // of it for weights of 8 bits: i32 [rows, groups of 128]
  TensorView sums = {};     // of it for weights of 4 bits: f32 [rows, groups of weights]
};

// y = epilogue(input * weight), or with `swiglu` the gated product of a pack_gate_up matrix.
struct Product {
  StagedInput input;
  const PackedMatrix& weight;
  TensorView y;
  Epilogue epilogue;
  bool swiglu = false;
};

void multiply(Context& ctx, const Product& product);

}  // namespace shoal::ops::cpu
