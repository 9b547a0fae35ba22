// In which numbers a model is kept and computed. Chosen once, when it is loaded.
#pragma once

#include "tensor/dtype.h"

namespace shoal {

// A weight matrix: how it is stored, and to which type a GEMM rounds its other operand before multiplying.
// Sums are f32.
struct MatrixFormat {
  DType weights = DType::f32;
  DType operand = DType::f32;

  constexpr MatrixFormat() = default;
  // Weights multiplied in the type they are stored in: f32, bf16 and f16 convert to their format.
  constexpr MatrixFormat(DType plain) : weights(plain), operand(plain) {}
  constexpr MatrixFormat(DType stored, DType multiplied) : weights(stored), operand(multiplied) {}

  bool operator==(const MatrixFormat&) const = default;
};

// Of a whole model. Embeddings, heads and biases are kept in the dtype of the operands or in f32: fewer bits
// there change the pacing of speech.
struct Formats {
  DType weights = DType::f32;   // of the layers' matrices
  DType operands = DType::f32;  // f32, bf16, or on a GPU f16
  DType kv = DType::f32;        // of keys and values in pages

  constexpr Formats() = default;
  // Everything in one dtype.
  constexpr Formats(DType all) : weights(all), operands(all), kv(all) {}
  constexpr Formats(DType of_weights, DType of_operands, DType of_kv)
      : weights(of_weights), operands(of_operands), kv(of_kv) {}

  bool operator==(const Formats&) const = default;
};

}  // namespace shoal
