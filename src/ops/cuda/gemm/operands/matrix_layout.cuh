// The layout of 16-bit weight matrices in device memory, and the order in which products are summed.
//
// Layout: tiles of 8 outputs by 32 inputs, 512 bytes: output n has 64 bytes at 64 n, in which the eight
// inputs 8c .. 8c + 7 are the 16 bytes at position c ^ (n / 2 % 4) (swizzled_chunk). Copied to shared memory
// unchanged, tiles have the form that wgmma takes as its operand with a swizzle of 64 bytes, and that
// ldmatrix reads without bank conflicts. Tiles of one row of tiles follow each other by tap, then by input;
// rows of tiles by output. Both are padded with zeros. In a SwiGLU pair, rows of tiles 2i and 2i + 1 hold
// outputs 8i .. 8i + 7 of the gate and of the up.
//
// 8-bit weights: the same tiles of 8 outputs by 32 inputs in 256 bytes. Lane 4 n + q of a warp has the eight
// bytes at 8 (4 n + q): of output n the inputs 8 c + 2 q and the next, for c = 0 .. 3. A byte is an integer
// + 128, or an e4m3 number, and every output has a scale.
//
// 4-bit weights: the same tiles in 128 bytes, a word a lane (int4_tile.cuh), in records of the 1, 2 or 4
// tiles that a group of inputs fills. A record begins with the scale and the minimum of each of its eight
// outputs; in a row of tiles the last one may have tiles that nobody reads.
//
// The tensor cores multiply 16 inputs at a time, by rising input. A chain of mma.sync.m16n8k16 and one of
// wgmma.m64nNk16 over the same inputs give the same bits (wide_test.cc checks it).
//
// Order: the f32 accumulator runs through the tiles of a segment by rising input, starting from zero; then
// the segments' sums are added one after the other, starting from zero (kSegments, or one per tap for a
// convolution). The order depends only on the shape of the matrix: not on the number of rows or the kernel.
// So every kernel gives the same bits for a row (docs/ARCHITECTURE.md, Determinism).
#pragma once

#include <cstdint>

namespace shoal::ops::cuda {

constexpr int kTileOutputs = 8, kTileInputs = 32;
constexpr int kTileBytes = kTileOutputs * kTileInputs * 2, kInt8TileBytes = kTileBytes / 2;
constexpr int kInt4TileBytes = kTileBytes / 4, kInt4HeadBytes = kTileOutputs * 4;
constexpr int kSegments = 8;  // of a matrix with one tap

enum class TileWeights : uint8_t { half, int8, fp8, int4 };  // half: bf16 or f16

constexpr int bits_of(TileWeights weights) {
  return weights == TileWeights::half ? 16 : weights == TileWeights::int4 ? 4 : 8;
}

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
  // Of 16-bit weights.
  __host__ __device__ int64_t bytes() const { return tile_rows() * row_tiles() * kTileBytes; }
};

// How weights lie in a row of tiles: record after record of one tile, or, in 4 bits, of a group's.
struct TileForm {
  int bits = 16;  // of a weight: 16, 8 or 4
  int shift = 0;  // a record has 1 << shift tiles

  __host__ __device__ int tile_bytes() const { return kTileBytes / 16 * bits; }
  __host__ __device__ int head_bytes() const { return bits == 4 ? kInt4HeadBytes : 0; }
  __host__ __device__ int record_bytes() const { return head_bytes() + (tile_bytes() << shift); }
  // Where the record that holds a tile begins, in its row of tiles.
  __host__ __device__ int start_of(int tile) const { return (tile >> shift) * record_bytes(); }
  // Whole records that hold `tiles` tiles from tile `begin` of a row on.
  __host__ __device__ int records(int begin, int tiles) const {
    return tiles > 0 ? ((begin + tiles - 1) >> shift) - (begin >> shift) + 1 : 0;
  }
  __host__ __device__ int64_t row_bytes(int64_t row_tiles) const {
    return ((row_tiles + (1 << shift) - 1) >> shift) * record_bytes();
  }
  __host__ __device__ int64_t bytes(const MatrixShape& shape) const {
    return shape.tile_rows() * row_bytes(shape.row_tiles());
  }
};

// The position of the eight weights of output n at inputs 32 tile + 2 quarter and so on, in bytes.
__host__ __device__ inline int64_t int8_index(const MatrixShape& shape, int64_t tile_row, int64_t row,
                                              int64_t tile, int64_t quarter) {
  return (tile_row * shape.row_tiles() + tile) * kInt8TileBytes + (row * 4 + quarter) * 8;
}

// How many segments the sum of an output has.
int64_t segments_of(const MatrixShape& matrix);
// Whether there is one tap, and all segments are there and have the same number of whole pairs of tiles.
bool has_even_segments(const MatrixShape& matrix);

// The position of chunk c of row n among the four 16-byte chunks of a row in a tile. Its own inverse.
__host__ __device__ constexpr int swizzled_chunk(int n, int c) { return c ^ (n / 2 % 4); }

// The position of element (n, tap, k), counted in elements. part: 0, or 1 for the up of a pair.
__host__ __device__ inline int64_t element_index(const MatrixShape& shape, int64_t part, int64_t n,
                                                 int64_t tap, int64_t k) {
  const int64_t tile_row = shape.paired ? n / kTileOutputs * 2 + part : n / kTileOutputs;
  const int64_t tile = tile_row * shape.row_tiles() + tap * shape.tap_tiles() + k / kTileInputs;
  const int row = static_cast<int>(n % kTileOutputs);
  const int64_t chunk = 4 * row + swizzled_chunk(row, static_cast<int>(k % kTileInputs / 8));
  return (tile * 32 + chunk) * 8 + k % 8;
}

// f32 matrices: [taps * depth, f32_columns], the outputs side by side, in a pair output n of the gate in
// column 2n and of the up in column 2n + 1; padded with zeros. Order: as above, with one fused multiply-add
// after the other through a segment's inputs; on tensor cores eight inputs after eight (f32/tf32.cuh).
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
