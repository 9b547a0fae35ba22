// Products by the kernels of broad.cuh, which only some GPUs can run.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// Inputs of the matrices that the kernels are made for, known when they are compiled: where the number of
// products between two uses of a sum is not, the compiler makes every product wait for the one before.
constexpr int kBroadDepth = 1024;
constexpr int kBroadRows = 128;  // of a block

// How a block divides its shared memory: a ring of rows, one of weights, barriers.
struct BroadPlan {
  int outputs = 0;  // of a block; 0: the kernels do not suit the product
  int weight_stages = 0;
  int weights_offset = 0, barriers_offset = 0, bytes = 0;
};
BroadPlan broad_plan(const MatrixShape& matrix, int64_t rows, const Machine& machine);

// If the GPU supports it, there is a plan, and the epilogue is plain (tile_arguments.cuh). Otherwise returns
// false and does nothing.
bool broad_product(Context& ctx, const Product& product);

}  // namespace shoal::ops::cuda
