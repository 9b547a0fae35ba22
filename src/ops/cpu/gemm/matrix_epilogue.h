// What happens to the sums of a product on their way to memory: the same bits on every instruction set.
#pragma once

#include "ops/linear.h"

namespace shoal::ops::cpu {

// Outputs first .. first + count - 1 of a few rows. y: output `first` of the first row.
struct FinishedBlock {
  int64_t first, count, rows;
  float* y;
  int64_t y_stride;
};

// y[i] = scale * act(sums[i] + bias), or added to y[i]. sums: rows of `stride` floats, which are overwritten.
void finish_rows(float* sums, int64_t stride, const FinishedBlock& block, const PackedMatrix& weight,
                 const Epilogue& epilogue);

// y[i] = silu(gate[i]) * up[i] for count <= 16.
void finish_swiglu_row(const float* gate, const float* up, int64_t count, float* y);

}  // namespace shoal::ops::cpu
