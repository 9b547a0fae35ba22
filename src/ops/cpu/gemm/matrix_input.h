// Converts the inputs of a product to the form that the kernels read: rounded, padded, with histories first.
#pragma once

#include "ops/conv1d.h"
#include "ops/cpu/gemm/matrix_product.h"

namespace shoal::ops::cpu {

// How a row of inputs is stored for the kernels.
enum class RowFormat : uint8_t {
  f32,
  rounded,  // float holding bf16 values
  bf16,
};

// The form that the active kernels need for rows multiplied as `operand`.
RowFormat row_format(DType operand);

// x for a matrix of one tap; x itself if it already has that form. Valid until the caller's workspace scope
// ends.
StagedInput stage_rows(Context& ctx, TensorView x, const PackedMatrix& weight);

// The sequences of a convolution, each as its history followed by its new rows (after the snake). The
// histories are replaced by the newest inputs.
struct StagedSequences {
  TensorView rows;  // [sum of (look_back + new rows) of sequences that have rows, padded width]
  std::span<const Segment> segments;  // input_row: the row of the first output's oldest tap
};
StagedSequences stage_sequences(Context& ctx, const ConvInput& input, int64_t look_back, RowFormat format,
                                int64_t padded_width);

// A signal that begins with the history of its first output.
StagedInput stage_signal(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation);

StagedInput stage_convolution(Context& ctx, const ConvInput& input, const PackedMatrix& weight,
                              int64_t dilation);

}  // namespace shoal::ops::cpu
