// Products of at most 16 rows by matrices that are larger than all blocks of skinny.cuh that run at once
// hold: one block to a multiprocessor, which stays, and through whose shared memory its part of the weights
// streams without a gap. A step is bound by reading weights.
//
// A block takes every gridDim.x-th unit of one or two rows of tiles; warp s computes segment s of each, and
// warps of their own add the segments and store them: nobody waits for the slowest segment of a unit, or its
// stores, before he asks for the next weights. The layout of weights, the order of sums and so the bits are
// those of all kernels (matrix_layout.cuh).
#pragma once

#include "ops/cuda/gemm/skinny/skinny.cuh"
#include "ops/cuda/gemm/skinny/streamed_weights.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

// A result that a thread of the storing warps stores of each unit: of 8 (kHigh: 16) rows by 8 outputs for
// each row of tiles.
template <bool kHigh>
class StreamedResult {
 public:
  StreamedResult() = default;
  static constexpr int kRows = kHigh ? 16 : 8, kTileResults = kRows * kTileOutputs;

  // Asks for what is added to the unit's result. first: the unit's first row of tiles.  index: the result's.
  __device__ StreamedResult(const SkinnyArguments& a, int first, int index) : index_(index) {
    const int tile_row = index / kTileResults, row = index / kTileOutputs % kRows;
    const int n = ((a.paired ? first / 2 : first) + tile_row) * kTileOutputs + index % kTileOutputs;
    result_ = AwaitedResult(a.epilogue, row, n,
                            tile_row < (a.paired ? 1 : a.block_rows) && row < a.rows && n < a.outputs);
    result_.ask(a.epilogue);
  }

  // sums: of the segments, [segment][row of tiles][row][output].
  __device__ void store(const SkinnyArguments& a, const float* sums) const {
    if (!result_.exists()) return;
    const int stride = a.block_rows * kTileResults * 4;
    const char* const from = reinterpret_cast<const char*>(sums + index_);
    const float sum = sum_of_segments(from, stride, a.segments);
    if (a.paired)
      result_.store_pair(a.epilogue, sum, sum_of_segments(from + kTileResults * 4, stride, a.segments));
    else
      result_.store(a.epilogue, sum);
  }

 private:
  int index_;
  AwaitedResult result_;
};

// The two places of the sums of a unit, which are filled and emptied in turn, by one kind of warps and the
// other, which so may be a unit apart.
class StreamedSums {
 public:
  __device__ StreamedSums(const SkinnyArguments& a, const StreamedShared& at, char* shared)
      : sums_(reinterpret_cast<float*>(shared + at.sums)),
        barriers_(shared_address(shared + at.turns)),
        segment_(StreamedShared::segment_sums_bytes(a) / 4),
        size_(a.segments * segment_) {}

  // By one thread, before a barrier of the block.
  __device__ void init() const {
    for (int place = 0; place < 2; ++place) {
      init_barrier(full(place), kSegments);
      init_barrier(empty(place), kStreamedStorers);
    }
    show_barriers();
  }
  __device__ void wait_until_empty() const { wait_for_phase(empty(place_), phase_ ^ 1); }
  __device__ void wait_until_full() const { wait_for_phase(full(place_), phase_); }
  __device__ float* place() const { return sums_ + place_ * size_; }
  __device__ float* place(int segment) const { return place() + segment * segment_; }
  // By whole warps: they have filled or emptied the place; the next one's turn.
  __device__ void filled() { pass(full(place_)); }
  __device__ void emptied() { pass(empty(place_)); }

 private:
  __device__ uint32_t full(int place) const { return barriers_ + static_cast<uint32_t>(place) * 16; }
  __device__ uint32_t empty(int place) const { return full(place) + 8; }
  __device__ void pass(uint32_t barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barrier);
    place_ ^= 1;
    if (place_ == 0) phase_ ^= 1;
  }

  float* sums_;
  uint32_t barriers_, phase_ = 0;
  int segment_, size_, place_ = 0;
};

// A row of up to 3,072 inputs in the registers of a warp.
using StreamedNorm = RowNormOf<24>;

// By the warps that store: the results of the block's units.
template <int kTileRows, bool kHigh>
__device__ inline void store_streamed(const SkinnyArguments& a, StreamedSums& sums) {
  using Result = StreamedResult<kHigh>;
  constexpr int kThreads = 32 * kStreamedStorers;
  constexpr int kCount = (kTileRows * Result::kTileResults + kThreads - 1) / kThreads;
  const int thread = static_cast<int>(threadIdx.x) - kSkinnyThreads;
  for (int first = static_cast<int>(blockIdx.x) * a.block_rows; first < a.tile_rows;
       first += static_cast<int>(gridDim.x) * a.block_rows) {
    Result results[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) results[i] = Result(a, first, i * kThreads + thread);
    sums.wait_until_full();
#pragma unroll
    for (int i = 0; i < kCount; ++i) results[i].store(a, sums.place());
    sums.emptied();
  }
}

// Brings the scales of 8-bit weights of all the block's units into shared memory, unit after unit; they are
// on their way when it returns.
__device__ inline void load_scales(const SkinnyArguments& a, const StreamedShared& at, char* shared) {
  constexpr int kFours = kTileOutputs / 4;  // of a row of tiles
  float4* const to = reinterpret_cast<float4*>(shared + at.scales);
  const int unit_fours = a.block_rows * kFours;
  for (int i = static_cast<int>(threadIdx.x);; i += kStreamedThreads) {
    const int unit = static_cast<int>(blockIdx.x) + i / unit_fours * static_cast<int>(gridDim.x);
    const int four = unit * unit_fours + i % unit_fours;
    if (unit * a.block_rows >= a.tile_rows) return;
    if (four < a.tile_rows * kFours) copy_async<16>(to + i, a.scales + four * 4);
  }
}

// Rows are of T, of T and in shared memory, or f32 and normed: one, or several.
enum class StreamedInput { direct, staged, one_normed, normed };

// Waits for the inputs, and brings them and what has been copied to where all warps see them.
// one_row: of a single normed row.  asked(): called by each warp when it has asked for its part of the
// inputs.
template <typename T, StreamedInput kInput, bool kScaled, typename Asked>
__device__ inline void stage_input(const SkinnyArguments& a, const StreamedShared& at, char* shared,
                                   [[maybe_unused]] const OneNormedRow<T>& one_row, const Asked& asked) {
  // Whoever starts beside a pair's block before it has its row takes memory from it (S2-Pro, one row, an
  // H200: int8 32.2 -> 32.1, fp8 36.7 -> 36.2 us a layer; others were not tried).
  if (a.paired)
    wait_for_predecessor();
  else
    wait_for_inputs();
  if constexpr (kInput == StreamedInput::one_normed) {
    one_row.stage(a, at, shared, asked);
  } else if constexpr (kInput == StreamedInput::normed) {
    stage_normed<T, StreamedNorm>(a, at, shared, asked);
  } else if constexpr (kInput == StreamedInput::staged) {
    stage_rows(a, at, shared, 0, a.row_tiles * 4, asked);
  } else {
    asked();
    if constexpr (kScaled) {
      wait_for_copies();
      __syncthreads();
    }
  }
  if (a.paired) let_successor_start();
}

// The units of the block: every gridDim.x-th. Its ring has fewer stages where other blocks have more units:
// memory serves a block by how much it asks for at a time, so that all end together.
__device__ inline StreamedRows rows_of_block(const SkinnyArguments& a) {
  const int units = (a.tile_rows + a.block_rows - 1) / a.block_rows, blocks = static_cast<int>(gridDim.x);
  const int most = (units + blocks - 1) / blocks;
  const int own = (units - 1 - static_cast<int>(blockIdx.x)) / blocks + 1;
  return {.first = static_cast<int>(blockIdx.x) * a.block_rows,
          .end = a.tile_rows,
          .step = blocks * a.block_rows,
          .stages = max(2, (2 * a.stages * own + most) / (2 * most))};
}

// Several normed rows take many registers; elsewhere some are left, so that what follows can begin early.
template <typename T, TileWeights kWeights, StreamedInput kInput, int kTileRows, bool kHigh>
__global__ void __launch_bounds__(kStreamedThreads, kInput == StreamedInput::normed ? 1 : 2)
    streamed_kernel(const SkinnyArguments a) {
#if __CUDA_ARCH__ >= 900
  constexpr int kBits = bits_of(kWeights);
  static_assert(kInput == StreamedInput::direct || !kHigh, "at most kNormRows are in shared memory");
  extern __shared__ uint4 shared_vectors[];
  char* shared = reinterpret_cast<char*>(shared_vectors);
  const StreamedShared at(a);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  // Of the warps that store: none.
  const int begin = min(warp * a.segment_tiles, a.row_tiles),
            tiles = warp < kSegments ? min(a.segment_tiles, a.row_tiles - begin) : 0;
  using Operands = TileOperands<T, kWeights, kTileRows>;
  // (16-bit weights of 16 rows, which choose.h gives to other kernels: 95 instead of 100 us a layer of
  // S2-Pro's sizes on an H200; why is not known.)
  constexpr bool kCounted = kBits < 16 || !kHigh;
  // Before the weights, whose many copies would stand in the way of these few.
  if constexpr (kBits == 8) load_scales(a, at, shared);
  if constexpr (kInput == StreamedInput::normed) load_norm(a, at, shared);
  [[maybe_unused]] const OneNormedRow<T> one_row(a, kInput == StreamedInput::one_normed);
  const StreamedRows rows = rows_of_block(a);
  StreamedWeights<kBits, kTileRows, kCounted> weights(a, shared, at.barriers, rows, begin, tiles);
  StreamedSums all_sums(a, at, shared);
  if (threadIdx.x == kSkinnyThreads) all_sums.init();
  __syncthreads();
  stage_input<T, kInput, kBits == 8>(a, at, shared, one_row, [&] { weights.ask_for_rest(); });
  if (warp >= kSegments) return store_streamed<kTileRows, kHigh>(a, all_sums);

  Operands operands(a, begin);
  const float* scales = reinterpret_cast<const float*>(shared + at.scales);  // of the next unit
  const auto run = [&](auto& input, auto ahead) {
    for (int first = rows.first; first < rows.end; first += rows.step) {
      operands.set_scales(scales);
      scales += a.block_rows * kTileOutputs;
      SegmentSums<T, kTileRows, kHigh, kBits == 8 && !kHigh> sums;
      multiply_segment<kTileRows, decltype(ahead)::value>(a, weights, operands, input, tiles, sums);
      input.restart();
      all_sums.wait_until_empty();
      if (tiles > 0) {
#pragma unroll
        for (int r = 0; r < kTileRows; ++r) {
          if (r >= a.block_rows) break;
          sums.store(r, Operands::kUnit, all_sums.place(warp) + r * (kHigh ? 16 : 8) * kTileOutputs);
        }
      }
      all_sums.filled();
    }
  };
  if constexpr (kInput != StreamedInput::direct) {
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
