// In which numbers a model is kept and computed. Chosen once, when it is loaded.
#pragma once

#include "tensor/dtype.h"

namespace shoal {

// Of 8 bits, with one scale for each output.
constexpr bool has_output_scales(DType weights) { return weights == DType::i8 || weights == DType::f8; }
// Of 8 or 4 bits.
constexpr bool is_quantised(DType weights) { return has_output_scales(weights) || weights == DType::u4; }

// A weight matrix: how it is stored, and to which type a GEMM rounds its other operand before multiplying.
// Sums are f32.
struct MatrixFormat {
  DType weights = DType::f32;
  DType operand = DType::f32;
  int64_t group = 0;  // of u4: inputs that share a scale and a minimum, 32, 64 or 128

  constexpr MatrixFormat() = default;
  // Weights multiplied in the type they are stored in: f32, bf16 and f16 convert to their format.
  constexpr MatrixFormat(DType plain) : weights(plain), operand(plain) {}
  constexpr MatrixFormat(DType stored, DType multiplied, int64_t inputs_together = 0)
      : weights(stored), operand(multiplied), group(inputs_together) {}

  bool operator==(const MatrixFormat&) const = default;
};

constexpr bool is_group_of_u4(int64_t inputs) { return inputs == 32 || inputs == 64 || inputs == 128; }
// What weights that are made 4 bits wide share if nobody chose (docs/QUANTISATION.md).
constexpr int64_t kUsualGroup = 64;

// Of a whole model. Embeddings, heads and biases are kept in the dtype of the operands or in f32: fewer bits
// there change the pacing of speech. Not so rows of a head from which no speech is drawn (dual_ar/bind.h).
struct Formats {
  DType weights = DType::f32;   // of the layers' matrices
  DType operands = DType::f32;  // f32, bf16, or on a GPU f16
  DType kv = DType::f32;        // of keys and values in pages
  int64_t group = 0;            // of weights in u4: MatrixFormat::group

  constexpr Formats() = default;
  // Everything in one dtype.
  constexpr Formats(DType all) : weights(all), operands(all), kv(all) {}
  constexpr Formats(DType of_weights, DType of_operands, DType of_kv)
      : weights(of_weights), operands(of_operands), kv(of_kv) {}

  bool operator==(const Formats&) const = default;
};

}  // namespace shoal
