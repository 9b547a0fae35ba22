// What the kernels of resident.cuh and resident_split.cuh are told.
#pragma once

#include "ops/cuda/resident_product.h"
#include "ops/cuda/tile_arguments.cuh"

namespace shoal::ops::cuda {

struct ResidentArguments {
  TileArguments tile;  // x: as tiled_operand leaves it; of a split product as it is
  ResidentPlan plan;
};

}  // namespace shoal::ops::cuda
