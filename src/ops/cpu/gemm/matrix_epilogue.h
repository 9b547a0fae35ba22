// What happens to the sums of a product on their way to memory. Compiled once, for the baseline instruction
// set: the same bits everywhere.
#pragma once

#include "ops/linear.h"

namespace shoal::ops::cpu {

// Outputs first .. first + count - 1 (at most 64) of one row: y[i] = scale * act(sums[i] + bias), or added to
// y[i]. y: output `first` of the row.
void finish_row(const float* sums, int64_t first, int64_t count, const PackedMatrix& weight,
                const Epilogue& epilogue, float* y);

// y[i] = silu(gate[i]) * up[i] for count <= 16.
void finish_swiglu_row(const float* gate, const float* up, int64_t count, float* y);

}  // namespace shoal::ops::cpu
