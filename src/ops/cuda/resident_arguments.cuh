// What the kernel of resident.cuh is told.
#pragma once

#include "ops/cuda/resident_product.h"
#include "ops/cuda/tile_arguments.cuh"

namespace shoal::ops::cuda {

struct ResidentArguments {
  TileArguments tile;  // x: as tiled_operand leaves it
  ResidentPlan plan;
};

}  // namespace shoal::ops::cuda
