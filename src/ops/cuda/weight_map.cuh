// How bulk copies find rectangles of a 16-bit weight matrix (matrix_layout.cuh): one instruction brings a
// stage, where one for each row of tiles keeps a warp busy for 100 cycles a row (H200).
#pragma once

#include <cstdint>
#include <cuda.h>

#include "ops/cuda/matrix_layout.cuh"

namespace shoal::ops::cuda {

constexpr int kWeightMapUnit = 8;  // bytes of a step along a row of tiles

// Rectangles of `tiles` tiles of `tile_rows` rows of tiles, [row][tile][512 bytes] in shared memory; what
// lies outside of the matrix is zeros. Goes to kernels by value.  weight: as the layout says, 16-byte
// aligned. Throws Error(unavailable) where the driver knows no such copies.
CUtensorMap weight_map(const void* weight, const MatrixShape& shape, int tile_rows, int tiles);

}  // namespace shoal::ops::cuda
