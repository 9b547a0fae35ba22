// The sums of a product, segment by segment, by the kernels of partial.cuh, which only some GPUs can run.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// How blocks divide the sums, and their shared memory: rows of x by 64 inputs, weights, barriers.
struct PartialPlan {
  int row_groups = 0;  // of 64 rows, of a block; 0: the kernels do not suit the product
  int tile_rows = 0;   // of the matrix, of a block
  int weights_offset = 0, barriers_offset = 0, bytes = 0;
};
constexpr int64_t kMostPartialRows = 256;
PartialPlan partial_plan(const MatrixShape& matrix, int64_t rows, const Machine& machine);

// sums = the sums of each segment of x weight^T (matrix_layout.cuh), without the epilogue: f32 [segments,
// rows, outputs], dense. Returns false and does nothing without such kernels or without a plan.
bool partial_product(Context& ctx, const Product& product, TensorView sums);

}  // namespace shoal::ops::cuda
