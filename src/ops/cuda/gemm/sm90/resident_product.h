// Products by the kernels of resident.cuh, which only some GPUs can run.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// How blocks divide the matrix, and their shared memory: rows of x by segment, weights (so that an operand of
// 64 rows reaches into them where there are fewer), barriers.
struct ResidentPlan {
  int tile_rows = 0;  // of a block; 0: the kernel does not suit the product
  int groups = 0;     // of eight rows of x
  int segment_bytes = 0;
  int weights_offset = 0, barriers_offset = 0, bytes = 0;
};
ResidentPlan resident_plan(const MatrixShape& matrix, int64_t rows, const Machine& machine);

// If the GPU supports it and there is a plan. Otherwise returns false and does nothing.
bool resident_product(Context& ctx, const Product& product);

}  // namespace shoal::ops::cuda
