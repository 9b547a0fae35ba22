// How the kernel of streamed.cuh cuts its work.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/skinny/skinny_arguments.cuh"

namespace shoal::ops::cuda {

constexpr int kMostStreamedStages = 8;
constexpr int kStreamedStorers = 2;  // warps that store
constexpr int kStreamedThreads = kSkinnyThreads + 32 * kStreamedStorers;

// The parts of a block's shared memory, in bytes from its start, where the ring of weights is, segment after
// segment.
struct StreamedShared : NormedShared {
  int sums;    // of segments, twice; where the norm's weights were
  int turns;   // barriers of their two places
  int scales;  // of 8-bit weights, of all units
  int barriers, bytes;

  __host__ __device__ explicit StreamedShared(const SkinnyArguments& a) {
    x_stride = a.row_tiles * 4 + 1;
    x = a.segments * a.segment_bytes();
    norm = sums = x + (a.rows_in_shared() ? a.rows * x_stride * 16 : 0);
    const int sums_bytes = 2 * a.segments * segment_sums_bytes(a);
    squares = norm + (a.norm_bytes() > sums_bytes ? a.norm_bytes() : sums_bytes);
    scales = squares + a.squares_bytes();
    turns = scales + a.scales_bytes(a.most_units * a.block_rows);
    barriers = turns + 4 * 8;
    bytes = barriers + (kSegments + kStreamedStorers) * kMostStreamedStages * 8;
  }
  // Of 8 or 16 rows.
  static __host__ __device__ int segment_sums_bytes(const SkinnyArguments& a) {
    return a.block_rows * (a.rows > 8 ? 16 : 8) * kTileOutputs * 4;
  }
};

inline int64_t parts_of(int64_t items, int64_t per_part) { return (items + per_part - 1) / per_part; }

// Sets stage_tiles, place_bytes, stages and first_stages for rings of units of block_rows rows of tiles that
// together take this many bytes. False: not even two stages fit.
bool choose_stages(SkinnyArguments& a, int64_t room);

// Sets block_rows (1 or 2), stage_tiles, stages, most_units and what is staged, for so many blocks: two
// thirds of a multiprocessor's shared memory, of 2 to 8 rows four fifths. The ring must be deep (half of the
// shared memory and two kernels at once: batch 8 of S2-Pro's sizes 1,160 instead of 1,402 frames/s on an
// H200), and what follows the kernel needs room to begin. False: there is none.
bool choose_stream(SkinnyArguments& a, const Machine& machine, int blocks);

// Whether a matrix has more weights than the blocks of skinny.cuh that run at once hold, so that they take
// turns. One row of 4-bit weights is faster by more warps than a block has here.
bool is_streamed(const MatrixShape& shape, int64_t rows, const TileForm& form, const Machine& machine);

}  // namespace shoal::ops::cuda
