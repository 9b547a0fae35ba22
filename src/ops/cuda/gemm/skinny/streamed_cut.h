// How the kernel of streamed.cuh cuts its work.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/skinny/skinny_arguments.cuh"

namespace shoal::ops::cuda {

constexpr int kMostStreamedStages = 8;

// The parts of a block's shared memory, in bytes from its start, where the ring of weights is, segment after
// segment.
struct StreamedShared : NormedShared {
  int sums;  // of segments, twice; where the norm's weights were
  int barriers, bytes;

  __host__ __device__ explicit StreamedShared(const SkinnyArguments& a) {
    x_stride = a.row_tiles * 4 + 1;
    x = a.segments * a.segment_bytes();
    norm = sums = x + (a.norm_weight ? a.rows * x_stride * 16 : 0);
    const int norm_bytes = a.norm_weight ? a.row_tiles * kTileInputs * 4 : 0;
    const int sums_bytes = 2 * a.segments * segment_sums_bytes(a);
    factor = norm + (norm_bytes > sums_bytes ? norm_bytes : sums_bytes);
    barriers = factor + 16;
    bytes = barriers + kSegments * kMostStreamedStages * 8;
  }
  // Of 8 or 16 rows.
  static __host__ __device__ int segment_sums_bytes(const SkinnyArguments& a) {
    return a.block_rows * (a.rows > 8 ? 16 : 8) * kTileOutputs * 4;
  }
};

// Sets block_rows (1 or 2), stage_tiles and stages, so that two kernels of a chain fit on a multiprocessor.
// False: they do not.
bool choose_stream(SkinnyArguments& a, const Machine& machine);

// Whether a matrix has more weights than the blocks of skinny.cuh that run at once hold, so that they take
// turns.
bool is_streamed(const MatrixShape& shape, bool int8, const Machine& machine);

}  // namespace shoal::ops::cuda
