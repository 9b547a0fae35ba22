// Products by weights of fewer bits, by the kernels of swapped.cuh, which only some GPUs can run.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// Of a warpgroup, and of a block, where a block has all rows of x.
constexpr int64_t kSwappedRows = 64, kMostSwappedRows = 192;

// How blocks divide a product, and their shared memory: stages of 64 inputs, of rows and of weights, then
// barriers.
struct SwappedPlan {
  int warps = 0;  // of a group of rows, each for two rows of tiles; 0: the kernels do not suit the product
  int rows = 0;   // of x in a block: all of them (16, 32, groups of 64), or 64, 128 or 160 of more
  int row_groups = 1;  // each multiplied by warps of its own
  int stages = 0;
  int tile_row_bytes = 0, stage_bytes = 0;  // of the weights of a stage: of a row of tiles, and padded
  int weights_offset = 0, barriers_offset = 0, bytes = 0;

  int group_rows() const { return rows / row_groups; }
  // That multiply; those of a group of rows follow each other.
  __host__ __device__ int warpgroups() const { return (warps + 3) / 4 * row_groups; }
};

// by_segment: a block multiplies one segment, instead of all. Whether there is a plan does not depend on the
// number of multiprocessors.
SwappedPlan swapped_plan(const MatrixShape& matrix, const TileForm& form, int64_t rows, bool by_segment,
                         const Machine& machine);

// y = the product, or the sums of each segment as partial_product's. Return false and do nothing without such
// kernels, without a plan, or with an activation.
bool swapped_product(Context& ctx, const Product& product);
bool swapped_segments(Context& ctx, const Product& product, TensorView sums);

}  // namespace shoal::ops::cuda
