// Draws from rows that are too long for the registers of one block.
#pragma once

#include "ops/cuda/sampling/draw_row.cuh"

namespace shoal::ops::cuda {

void draw_wide(Context& ctx, const DrawCall& call, int64_t rows);

}  // namespace shoal::ops::cuda
