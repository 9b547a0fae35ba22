// How bulk copies find rectangles of the operands of a product. One instruction brings a stage of a 16-bit
// weight matrix (matrix_layout.cuh), where one for each row of tiles keeps a warp busy for 60 to 100 cycles a
// row (H200), and a tile of many rows of x.
#pragma once

#include <cstdint>
#include <cuda.h>

#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

constexpr int kWeightMapUnit = 8;  // bytes of a step along a row of tiles

// Rectangles of `tiles` tiles of `tile_rows` rows of tiles, [row][tile][512 bytes] in shared memory; what
// lies outside of the matrix is zeros. Goes to kernels by value.  weight: as the layout says, 16-byte
// aligned. Throws Error(unavailable) where the driver knows no such copies.
CUtensorMap weight_map(const void* weight, const MatrixShape& shape, int tile_rows, int tiles);

// Rectangles of `box_rows` rows of one tile's 32 inputs, or of two tiles' 64: [row][64 or 128 bytes] in
// shared memory, their chunks as swizzled_chunk says, or as operand_of_pairs_at (wgmma.cuh); what lies
// outside of the rows is zeros.  x: 16-bit elements [rows, depth], 16-byte aligned, as the stride is. stride:
// elements. Throws as above.
CUtensorMap rows_map(const void* x, int64_t rows, int64_t depth, int64_t stride, int box_rows, int box_tiles);

}  // namespace shoal::ops::cuda
