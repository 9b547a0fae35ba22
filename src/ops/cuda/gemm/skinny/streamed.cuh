// Products of at most 16 rows by matrices that are larger than all blocks of skinny.cuh that run at once
// hold: one block to a multiprocessor, which stays, and through whose shared memory its part of the weights
// streams without a gap. Half of a multiprocessor's shared memory, so that the weights of the next kernel in
// the chain are on their way before this one ends: a step is bound by reading weights.
//
// A block takes every gridDim.x-th unit of one or two rows of tiles; warp s computes segment s of each. Sums
// pass through shared memory in two places in turn, so that a unit costs one barrier. The layout of weights,
// the order of sums and so the bits are those of all kernels (matrix_layout.cuh).
#pragma once

#include "ops/cuda/gemm/skinny/skinny.cuh"
#include "ops/cuda/gemm/skinny/streamed_cut.h"

namespace shoal::ops::cuda {

// The tiles of a warp's segment in the units of its block, piece after piece, through a ring.  kBytes: of a
// tile.
template <int kBytes>
class StreamedWeights {
 public:
  // Starts the copies of what there is place for. begin, tiles: the segment's.
  __device__ StreamedWeights(const SkinnyArguments& a, const StreamedShared& at, char* shared, int begin,
                             int tiles)
      : a_(a), tiles_(tiles), first_(static_cast<int>(blockIdx.x) * a.block_rows) {
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
    from_ = a.weight + static_cast<int64_t>(begin) * kTileVectors;
    ring_ = shared + warp * a.segment_bytes();
    barriers_ = static_cast<uint32_t>(
        __cvta_generic_to_shared(shared + at.barriers + warp * kMostStreamedStages * 8));
    if (lane() == 0) {
      for (int stage = 0; stage < a.stages; ++stage) init_barrier(barriers_ + stage * 8, 1);
      show_barriers();
    }
    __syncwarp();
    for (int stage = 0; stage < a.stages; ++stage) copy();
  }

  // The next piece; pieces are counted by the ring.
  __device__ void wait(int) const { wait_for_phase(barriers_ + stage_ * 8, parity_); }
  __device__ char* place(int) const { return ring_ + stage_ * a_.stage_bytes(); }
  // All lanes have used it: another one takes its place.
  __device__ void release(int) {
    __syncwarp();
    copy();
    if (++stage_ == a_.stages) stage_ = 0, parity_ ^= 1;
  }

 private:
  static constexpr int kTileVectors = kBytes / 16;
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }

  __device__ void copy() {
    if (first_ >= a_.tile_rows || tiles_ <= 0) return;
    if (lane() == 0) {
      const int count = min(a_.stage_tiles, tiles_ - done_),
                valid = min(a_.block_rows, a_.tile_rows - first_);
      const uint32_t barrier = barriers_ + fill_ * 8;
      const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(ring_ + fill_ * a_.stage_bytes()));
      const uint4* const from = from_ + (static_cast<int64_t>(first_) * a_.row_tiles + done_) * kTileVectors;
      arrive_expecting(barrier, static_cast<uint32_t>(valid * count * kBytes));
      for (int r = 0; r < valid; ++r)
        copy_bulk(to + static_cast<uint32_t>(r * a_.stage_tiles * kBytes),
                  from + static_cast<int64_t>(r) * a_.row_tiles * kTileVectors,
                  static_cast<uint32_t>(count * kBytes), barrier);
    }
    if (++fill_ == a_.stages) fill_ = 0;
    if ((done_ += a_.stage_tiles) < tiles_) return;
    done_ = 0;
    first_ += static_cast<int>(gridDim.x) * a_.block_rows;
  }

  const SkinnyArguments& a_;
  const uint4* from_;
  char* ring_;
  uint32_t barriers_, parity_ = 0;
  int tiles_;
  int stage_ = 0;                    // the next piece's
  int first_, done_ = 0, fill_ = 0;  // of what is copied next: the unit's first row of tiles, tiles, stage
};

// The result that a thread stores of each unit: of 8 (kHigh: 16) rows by 8 outputs for each row of tiles.
template <bool kHigh>
class StreamedResult {
 public:
  // Asks for what is added to the unit's result. first: the unit's first row of tiles.
  __device__ StreamedResult(const SkinnyArguments& a, int first) : a_(a) {
    const int thread = static_cast<int>(threadIdx.x);
    tile_row_ = thread / kTileResults;
    row_ = thread / kTileOutputs % kRows;
    output_ = thread % kTileOutputs;
    n_ = ((a.paired ? first / 2 : first) + tile_row_) * kTileOutputs + output_;
    exists_ = tile_row_ < (a.paired ? 1 : a.block_rows) && row_ < a.rows && n_ < a.outputs;
    if (!exists_ || a.paired) return;
    if (a.epilogue.bias) bias_ = __ldg(a.epilogue.bias + n_);
    if (a.epilogue.scale) scale_ = __ldg(a.epilogue.scale + n_);
    if (a.epilogue.accumulate)
      before_ = static_cast<const float*>(a.epilogue.y)[row_ * a.epilogue.y_stride + n_];
  }

  // sums: of the segments, [segment][row of tiles][row][output].
  __device__ void store(const float* sums) const {
    if (!exists_) return;
    if (a_.paired) return store_swiglu(a_.epilogue, row_, n_, sum(sums, 0), sum(sums, 1));
    store_value(a_.epilogue.y, row_ * a_.epilogue.y_stride + n_, a_.epilogue.y_dtype,
                epilogue_value(sum(sums, tile_row_), bias_, scale_, before_, a_.epilogue.activation));
  }

 private:
  static constexpr int kRows = kHigh ? 16 : 8, kTileResults = kRows * kTileOutputs;

  // The segments' sums, added in order.
  __device__ float sum(const float* sums, int tile_row) const {
    const float* const from = sums + tile_row * kTileResults + row_ * kTileOutputs + output_;
    float sum = 0.0f;
#pragma unroll
    for (int segment = 0; segment < kSegments; ++segment)
      if (segment < a_.segments) sum = __fadd_rn(sum, from[segment * a_.block_rows * kTileResults]);
    return sum;
  }

  const SkinnyArguments& a_;
  int tile_row_, row_, output_, n_;
  bool exists_;
  float bias_ = 0.0f, scale_ = 1.0f, before_ = 0.0f;
};

// A row of 2,560 inputs in the registers of a warp.
using StreamedNorm = RowNormOf<20>;

// kNormed: rows are f32 and normed here; else they are of T.
template <typename T, bool kInt8, bool kNormed, int kTileRows, bool kHigh>
__global__ void __launch_bounds__(kSkinnyThreads, 2) streamed_kernel(const SkinnyArguments a) {
#if __CUDA_ARCH__ >= 900
  static_assert(!(kNormed && kHigh), "at most kNormRows are normed");
  extern __shared__ uint4 shared_vectors[];
  char* shared = reinterpret_cast<char*>(shared_vectors);
  const StreamedShared at(a);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0),
            lane = static_cast<int>(threadIdx.x % 32);
  const int begin = min(warp * a.segment_tiles, a.row_tiles),
            tiles = min(a.segment_tiles, a.row_tiles - begin);
  const int step = static_cast<int>(gridDim.x) * a.block_rows;
  using Operands = TileOperands<T, kInt8, kTileRows>;
  StreamedWeights<Operands::kBytes> weights(a, at, shared, begin, tiles);
  const auto operands_of = [&](int first) {
    first = min(first, a.tile_rows - 1);
    return Operands(a, first, min(a.block_rows, a.tile_rows - first));
  };
  int first = static_cast<int>(blockIdx.x) * a.block_rows;
  Operands operands = operands_of(first);
  if constexpr (kNormed)
    for (int k = static_cast<int>(threadIdx.x) * 4; k < a.depth; k += kSkinnyThreads * 4)
      copy_async<16>(shared + at.norm + k * 4, a.norm_weight + k);
  wait_for_inputs();

  float* const all_sums = reinterpret_cast<float*>(shared + at.sums);
  const int segment_sums = StreamedShared::segment_sums_bytes(a) / 4;
  float* place = all_sums;
  const auto run = [&](auto& input, auto ahead) {
    for (; first < a.tile_rows; first += step) {
      const Operands next = operands_of(first + step);  // scales take as long to come as weights
      const StreamedResult<kHigh> result(a, first);
      float sums[kTileRows][4] = {};
      multiply_segment<T, kTileRows, decltype(ahead)::value>(a, weights, operands, input, tiles, sums);
      input.restart();
      if (tiles > 0) {
#pragma unroll
        for (int r = 0; r < kTileRows; ++r) {
          if (r >= a.block_rows) break;
          float2* const to =
              reinterpret_cast<float2*>(place + warp * segment_sums + r * (kHigh ? 16 : 8) * kTileOutputs) +
              lane;
          to[0] = {sums[r][0], sums[r][1]};
          if constexpr (kHigh) to[32] = {sums[r][2], sums[r][3]};
        }
      }
      __syncthreads();
      result.store(place);
      place = place == all_sums ? all_sums + a.segments * segment_sums : all_sums;
      operands = next;
    }
  };
  if constexpr (kNormed) {
    if (a.rows == 1)
      stage_one_normed<T, StreamedNorm>(a, at, shared, begin, tiles);
    else
      stage_normed<T, StreamedNorm>(a, at, shared);
    __syncthreads();  // sums take the place of the norm's weights
    NormedInput input(a, at, shared, begin);
    run(input, std::integral_constant<int, 4>());
  } else {
    constexpr int kAhead = (kTileRows == 1 ? 8 : 4) / (kHigh ? 2 : 1);
    DirectInput<T, false, kHigh, kAhead> input(a, begin, tiles);
    run(input, std::integral_constant<int, kAhead>());
  }
#endif
}

}  // namespace shoal::ops::cuda
