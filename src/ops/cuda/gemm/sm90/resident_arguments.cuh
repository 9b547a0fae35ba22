// The arguments of the kernel of resident.cuh.
#pragma once

#include <cuda.h>

#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/gemm/sm90/resident_product.h"

namespace shoal::ops::cuda {

struct ResidentArguments {
  TileArguments tile;
  ResidentPlan plan;
  CUtensorMap rows;  // two tiles of all rows
};

}  // namespace shoal::ops::cuda
