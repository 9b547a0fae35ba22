// What the kernel of resident.cuh is told.
#pragma once

#include <cuda.h>

#include "ops/cuda/resident_product.h"
#include "ops/cuda/tile_arguments.cuh"

namespace shoal::ops::cuda {

struct ResidentArguments {
  TileArguments tile;
  ResidentPlan plan;
  CUtensorMap rows;  // two tiles of all rows
};

}  // namespace shoal::ops::cuda
