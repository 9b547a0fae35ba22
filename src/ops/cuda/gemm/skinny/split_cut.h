// How the kernel of split.cuh cuts its work.
#pragma once

#include "ops/cuda/gemm/skinny/streamed_cut.h"

namespace shoal::ops::cuda {

constexpr int kSplitBlocks = 2;                           // of a cluster
constexpr int kSplitSegments = kSegments / kSplitBlocks;  // of a block
constexpr int kSplitTileRows = 3;                         // of a unit at most
constexpr int kSplitGroups = kSegments / kSplitSegments;  // of its warps: as many units at a time

// The parts of a block's shared memory, in bytes from its start, where the rings of weights are, warp after
// warp.
struct SplitShared : NormedShared {
  int sums;     // of the rows of tiles that it stores, [row of tiles][segment][row of x][output]
  int scales;   // of 8-bit weights
  int arrived;  // barrier of the sums
  int barriers, bytes;

  __host__ __device__ explicit SplitShared(const SkinnyArguments& a) {
    const int rows = a.most_units * a.block_rows;
    x_stride = kSplitSegments * a.segment_tiles * 4 + 1;
    x = kSegments * a.segment_bytes();
    norm = squares = 0;
    sums = x + a.rows * x_stride * 16;
    scales = sums + (rows + 1) / kSplitBlocks * kSegments * kTileResults * 4;
    arrived = scales + a.scales_bytes(rows);
    barriers = arrived + 16;
    bytes = barriers + kSegments * kMostStreamedStages * 8;
  }

  static constexpr int kTileResults = kNormRows * kTileOutputs;
};

// The first of the rows of tiles of a cluster, of so many clusters.
__host__ __device__ inline int first_row_of(int cluster, int tile_rows, int clusters) {
  return static_cast<int>(int64_t{cluster} * tile_rows / clusters);
}

// Sets how the work is cut for so many clusters, with all rows staged. False: there is no room, or a block
// has more results than its threads can store.
bool choose_split(SkinnyArguments& a, const Machine& machine, int clusters);

// Whether clusters of two share a large matrix out more evenly than blocks do: S2-Pro's 320 rows of tiles are
// five to a cluster at most, and three to a block. Up to eight rows of x.
bool is_split(const MatrixShape& shape, int64_t rows, const TileForm& form, const Machine& machine);

}  // namespace shoal::ops::cuda
