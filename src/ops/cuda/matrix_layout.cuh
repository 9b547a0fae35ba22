// How 16-bit weight matrices lie in device memory, and the order in which products are summed.
//
// Layout: tiles of 8 outputs by 32 inputs, 512 bytes, in the order in which a warp multiplies them: lane
// 4 * (n % 8) + (k % 32) / 8 holds the eight inputs k % 32 / 8 * 8 .. + 7 of output n in 16 bytes. Tiles of
// one row of tiles follow each other by tap, then by input; rows of tiles by output. Both are padded with
// zeros. In a SwiGLU pair, rows of tiles 2i and 2i + 1 hold outputs 8i .. 8i + 7 of the gate and of the up.
//
// Such a tile is the B operand of two mma.m16n8k16 whose inputs are renumbered: within 32 inputs,
// multiplication j (0, 1) takes, for quad q = lane % 4, the inputs 8q + 4j + {0, 1} as its k = 2q + {0, 1}
// and 8q + 4j + {2, 3} as k = 2q + 8 + {0, 1}. The A operand follows suit: lane (g = lane / 4, q) needs the
// eight consecutive inputs 8q .. 8q + 7 of rows g and g + 8: two 16-byte loads from row-major activations,
// for both multiplications.
//
// Order: the f32 accumulator runs through the tiles of a segment by rising input, starting from zero; then
// the segments' sums are added one after the other, starting from zero (kSegments, or one per tap for a
// convolution). It depends on the shape of the matrix alone: not on how many rows there are, nor on the
// kernel. So every kernel gives the same bits for a row (design section 5).
#pragma once

#include <cstdint>

namespace shoal::ops::cuda {

constexpr int kTileOutputs = 8, kTileInputs = 32;
constexpr int kTileBytes = kTileOutputs * kTileInputs * 2;
constexpr int kSegments = 8;  // of a matrix with one tap

struct MatrixShape {
  int64_t outputs = 0;  // of the result (of one of a pair)
  int64_t taps = 1;
  int64_t depth = 0;  // inputs per tap
  bool paired = false;

  __host__ __device__ int64_t tile_rows() const {
    return (outputs + kTileOutputs - 1) / kTileOutputs * (paired ? 2 : 1);
  }
  __host__ __device__ int64_t tap_tiles() const { return (depth + kTileInputs - 1) / kTileInputs; }
  __host__ __device__ int64_t row_tiles() const { return taps * tap_tiles(); }
  // Tiles of a segment (the last one may have fewer).
  __host__ __device__ int64_t segment_tiles() const {
    return taps > 1 ? tap_tiles() : (tap_tiles() + kSegments - 1) / kSegments;
  }
  __host__ __device__ int64_t bytes() const { return tile_rows() * row_tiles() * kTileBytes; }
};

// Where element (n, tap, k) lies, counted in elements. part: 0, or 1 for the up of a pair.
__host__ __device__ inline int64_t element_index(const MatrixShape& shape, int64_t part, int64_t n,
                                                 int64_t tap, int64_t k) {
  const int64_t tile_row = shape.paired ? n / kTileOutputs * 2 + part : n / kTileOutputs;
  const int64_t tile = tile_row * shape.row_tiles() + tap * shape.tap_tiles() + k / kTileInputs;
  const int64_t lane = n % kTileOutputs * 4 + k % kTileInputs / 8;
  return (tile * 32 + lane) * 8 + k % 8;
}

// f32 matrices, which the ordinary units multiply: [taps * depth, f32_columns], the outputs side by side, in
// a pair output n of the gate in column 2n and of the up in column 2n + 1; padded with zeros. Order: as
// above, with one fused multiply-add after the other through a segment's inputs.
constexpr int kF32Columns = 64;  // a multiple of it

__host__ __device__ inline int64_t f32_columns(const MatrixShape& shape) {
  const int64_t used = shape.outputs * (shape.paired ? 2 : 1);
  return (used + kF32Columns - 1) / kF32Columns * kF32Columns;
}
__host__ __device__ inline int64_t f32_bytes(const MatrixShape& shape) {
  return shape.taps * shape.depth * f32_columns(shape) * 4;
}
__host__ __device__ inline int64_t f32_index(const MatrixShape& shape, int64_t part, int64_t n, int64_t tap,
                                             int64_t k) {
  return (tap * shape.depth + k) * f32_columns(shape) + (shape.paired ? 2 * n + part : n);
}

}  // namespace shoal::ops::cuda
