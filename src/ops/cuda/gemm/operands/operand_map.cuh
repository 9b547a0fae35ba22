// How bulk copies find rectangles of the operands of a product. One instruction brings a stage of a
// weight matrix (matrix_layout.cuh), where one for each row of tiles keeps a warp busy for 60 to 100 cycles a
// row (H200), and a tile of many rows of x.
#pragma once

#include <cstdint>
#include <cuda.h>

#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

constexpr int kWeightMapUnit = 8;  // bytes of a step along a row of tiles

// Rectangles of `tiles` tiles of `tile_rows` rows of tiles, [row][tile][512 bytes] in shared memory; zeros
// outside the matrix. Passed to kernels by value. weight: in the layout, 16-byte aligned; null in plans.
// Throws Error(unavailable) where the driver has no such copies.
CUtensorMap weight_map(const void* weight, const MatrixShape& shape, int tile_rows, int tiles);
// The same of whole records of any form, `bytes` of each row of tiles: [row][bytes] in shared memory.
CUtensorMap record_map(const void* weight, const MatrixShape& shape, const TileForm& form, int tile_rows,
                       int bytes);

// Rectangles of `box_rows` rows of one tile's 32 inputs, or of two tiles' 64: [row][64 or 128 bytes] in
// shared memory, their chunks arranged by swizzled_chunk, or by operand_of_pairs_at (wgmma.cuh); zeros
// outside the rows. x: 16-bit elements [rows, depth], with 16-byte aligned address and stride. stride:
// elements. Throws as above.
CUtensorMap rows_map(const void* x, int64_t rows, int64_t depth, int64_t stride, int box_rows, int box_tiles);

}  // namespace shoal::ops::cuda
