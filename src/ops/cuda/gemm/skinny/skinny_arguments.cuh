// What the kernel of skinny.cuh is told, and how its blocks divide their shared memory.
#pragma once

#include <cstdint>

#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

constexpr int kSkinnyThreads = kSegments * 32;
constexpr int kMostStages = 3, kMostStreamedRows = 2;
constexpr int kNormRows = kSegments;  // rows that a block norms at most: one by each warp

// How many tiles of 16-bit inputs are asked for ahead of the multiplications: at most 48 registers. Of one
// row of tiles all of a segment of 3,072 inputs (1,024 x 3,072 of eight rows 4.4 -> 3.3 us on an H200), of
// several rows of tiles less.
__host__ __device__ constexpr int tiles_ahead(int tile_rows) {
  return tile_rows == 1 ? 12 : tile_rows <= 4 ? 4 : 2;
}

struct SkinnyArguments {
  const uint4* weight;
  const float* scales;  // of 8-bit weights
  const void* x;
  int64_t x_stride;
  int rows, depth, outputs;  // depth: rounded up to a multiple of 8
  int tile_rows, row_tiles, segment_tiles, segments;
  bool paired;
  TileForm form;
  const float* norm_weight;  // f32 x only; null: no norm
  float eps;
  ProductEpilogue epilogue;

  // How the work is cut (choose_cut). A block owns block_rows rows of tiles. In shared memory a segment has
  // `stages` places for stage_tiles tiles of each row: one place for all of it, or two or three through which
  // it streams. Or the weights are joined: row after row, as they lie in the matrix, by one copy.
  int block_rows = 0, stage_tiles = 0, stages = 0;
  int place_bytes = 0;  // of a row's tiles in a place
  bool joined = false;
  int row_stride = 0, segment_stride = 0;  // bytes between rows of tiles in a place; between segments' places
  int first_stages = 0;  // that are asked for before the inputs are there, by streamed.cuh and split.cuh
  int most_units = 0;    // of block_rows rows of tiles: of a block of streamed.cuh, a cluster of split.cuh
  bool staged = false;   // rows that need no norm are copied into shared memory

  // Of the norm's weights in shared memory: a single row's are in registers (OneNormedRow).
  __host__ __device__ int norm_bytes() const {
    return norm_weight && rows > 1 ? row_tiles * kTileInputs * 4 : 0;
  }
  __host__ __device__ bool one_normed() const { return norm_weight && rows == 1; }
  __host__ __device__ int squares_bytes() const { return one_normed() ? kSkinnyThreads * 4 : 0; }
  __host__ __device__ bool rows_in_shared() const { return norm_weight || staged; }
  // Of 8-bit weights, of so many rows of tiles.
  __host__ __device__ int scales_bytes(int tile_rows_of_them) const {
    return form.bits == 8 ? tile_rows_of_them * kTileOutputs * 4 : 0;
  }
  __host__ __device__ int stage_bytes() const { return block_rows * place_bytes; }
  __host__ __device__ int segment_bytes() const { return stages * stage_bytes(); }
  __host__ __device__ int places_bytes() const {
    return joined ? block_rows * row_stride : segments * segment_bytes();
  }
};

// Where normed rows are in a block's shared memory, in bytes from its start.
struct NormedShared {
  int x_stride;  // 16-byte vectors between normed rows of x: an odd number, so that eight rows' vectors of
                 // one place use all banks once
  int x, norm;   // the rows; the norm's weights, of several rows
  int squares;   // of a single normed row: sums of its squares, [warp][lane]
};

// The parts of a block's shared memory, in bytes from its start, where the weights are, segment after
// segment.
struct SkinnyShared : NormedShared {
  int barriers, bytes;

  __host__ __device__ explicit SkinnyShared(const SkinnyArguments& a) {
    x_stride = a.row_tiles * 4 + 1;
    x = a.places_bytes();
    norm = x + (a.rows_in_shared() ? a.rows * x_stride * 16 : 0);
    squares = norm + a.norm_bytes();
    barriers = squares + a.squares_bytes();
    bytes = barriers + kSegments * kMostStages * 8;
  }
};

}  // namespace shoal::ops::cuda
