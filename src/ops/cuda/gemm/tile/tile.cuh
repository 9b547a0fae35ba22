// Products of 16-bit matrices and many rows on the tensor cores, in the layout and the order of
// matrix_layout.cuh.
//
// Tiles of x (kRows x 32 inputs, rows of 64 bytes) and of weights (512 bytes, as they lie in memory) travel
// to shared memory by asynchronous copies, a few stages ahead, both swizzled, so that a warp's loads and
// stores meet no bank conflicts without padding. A convolution differs only in where a row of x is found: row
// first_rows[t] + tap * dilation.
//
// Bound by shared memory for the largest shape: 6 KiB of operands per 64 x 32 x 32 products of a warp, 48
// cycles at 128 bytes a cycle, against 32 cycles of the tensor cores at their nominal rate.
#pragma once

#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/tile_store.cuh"
#include "ops/cuda/gemm/tile/tile_load.cuh"
#include "ops/cuda/ptx/mma.cuh"

namespace shoal::ops::cuda {

// A warp's sums: 16 x 8 outputs each, in the fragments of mma.
template <int kShape>
struct TileSums {
  using Sizes = TileSizes<kShape>;
  float values[Sizes::kRowTiles][Sizes::kOutputTiles][4];

  __device__ void clear() {
#pragma unroll
    for (auto& row : values)
#pragma unroll
      for (auto& tile : row)
#pragma unroll
        for (float& value : tile) value = 0.0f;
  }
  __device__ void add(const TileSums& other) {
#pragma unroll
    for (int m = 0; m < Sizes::kRowTiles; ++m)
#pragma unroll
      for (int n = 0; n < Sizes::kOutputTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) values[m][n][i] = __fadd_rn(values[m][n][i], other.values[m][n][i]);
  }
};

// sums += the products over one tile of 32 inputs. rows, weights: of the warp, its lane's place.
template <typename T, int kShape>
__device__ inline void multiply(TileSums<kShape>& sums, const uint4* rows, const uint4* weights) {
  using Sizes = TileSizes<kShape>;
  uint4 low[Sizes::kRowTiles], high[Sizes::kRowTiles], w[Sizes::kOutputTiles];
#pragma unroll
  for (int m = 0; m < Sizes::kRowTiles; ++m) {
    low[m] = load_operand(rows + m * 64);
    high[m] = load_operand(rows + m * 64 + 32);
  }
#pragma unroll
  for (int n = 0; n < Sizes::kOutputTiles; ++n) w[n] = load_operand(weights + n * 32);
#pragma unroll
  for (int n = 0; n < Sizes::kOutputTiles; ++n)
#pragma unroll
    for (int m = 0; m < Sizes::kRowTiles; ++m)
      multiply_16<T>(sums.values[m][n], low[m].x, high[m].x, low[m].y, high[m].y, w[n].x, w[n].y);
#pragma unroll
  for (int n = 0; n < Sizes::kOutputTiles; ++n)
#pragma unroll
    for (int m = 0; m < Sizes::kRowTiles; ++m)
      multiply_16<T>(sums.values[m][n], low[m].z, high[m].z, low[m].w, high[m].w, w[n].z, w[n].w);
}

// Runs through tiles [begin, end). At the end of every segment the sums are added to the totals; with
// depth_groups there is but one segment, and its sums are the result.
template <typename T, int kShape>
__device__ inline void run_through(const TileArguments& arguments, const char* stages,
                                   TileLoader<kShape>& loader, int thread, int begin, int end,
                                   TileSums<kShape>& totals) {
  using Sizes = TileSizes<kShape>;
  constexpr bool kTotals = Sizes::kDepthGroups == 1;
  const int warp = thread / 32, lane = thread % 32;
  const int row_warp = warp / Sizes::kThis.output_warps, output_warp = warp % Sizes::kThis.output_warps;
  const int chunk = lane % 8 * 4 + swizzled_chunk(lane % 8, lane / 8);
  const uint4* const rows =
      reinterpret_cast<const uint4*>(stages) + row_warp * (Sizes::kRowTiles * 16) * 4 + chunk;
  const uint4* const weights = reinterpret_cast<const uint4*>(stages) +
                               Sizes::kStageTiles * Sizes::kRowChunks +
                               output_warp * Sizes::kOutputTiles * 32 + chunk;
  TileSums<kShape> sums;
  sums.clear();
  totals.clear();
  int stage = 0;
  int segment_end = min(begin + arguments.segment_tiles, end);
  for (int tile = begin; tile < end; tile += Sizes::kStageTiles) {
    wait_for_copy_groups<Sizes::kStages - 2>();
    if constexpr (kTotals)
      __syncthreads();
    else
      __syncwarp();
    constexpr int kAhead = (Sizes::kStages - 1) * Sizes::kStageTiles;
    const int free_stage = (stage == 0 ? Sizes::kStages : stage) - 1;
    loader.copy_weights(free_stage, tile + kAhead);
    loader.copy_rows(free_stage, tile + kAhead);
    end_copy_group();
    const int at = stage * Sizes::kStageChunks;
#pragma unroll
    for (int i = 0; i < Sizes::kStageTiles; ++i) {
      if (tile + i >= end) break;
      multiply<T, kShape>(kTotals ? sums : totals, rows + at + i * Sizes::kRowChunks,
                          weights + at + i * Sizes::kWeightChunks);
      if (kTotals && tile + i + 1 == segment_end) {
        totals.add(sums);
        sums.clear();
        segment_end = min(segment_end + arguments.segment_tiles, end);
      }
    }
    stage = stage + 1 == Sizes::kStages ? 0 : stage + 1;
  }
}

// Every segment has its own block: leaves its sums in memory; the last one of a tile to come adds them all
// up, in order. False: the block was not the last.
template <int kShape>
__device__ inline bool gather_segments(const TileArguments& arguments, int tile, TileSums<kShape>& sums) {
  using Sizes = TileSizes<kShape>;
  constexpr int kPieces = Sizes::kRowTiles * Sizes::kOutputTiles;
  const auto piece = [&](int segment, int i) {
    const int64_t at = (static_cast<int64_t>(tile) * arguments.segments + segment) * kPieces + i;
    return reinterpret_cast<float4*>(arguments.partial) + at * Sizes::kThreads + threadIdx.x;
  };
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const float* v = sums.values[i / Sizes::kOutputTiles][i % Sizes::kOutputTiles];
    __stcg(piece(static_cast<int>(blockIdx.y), i), make_float4(v[0], v[1], v[2], v[3]));
  }
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)  // wraps to 0 with the last: ready for the next time
    last = atomicInc(arguments.counters + tile, static_cast<unsigned>(arguments.segments - 1)) ==
           static_cast<unsigned>(arguments.segments - 1);
  __syncthreads();
  if (!last) return false;
  __threadfence();
  sums.clear();
  for (int segment = 0; segment < arguments.segments; ++segment) {
    TileSums<kShape> others;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      float* v = others.values[i / Sizes::kOutputTiles][i % Sizes::kOutputTiles];
      const float4 value = __ldcg(piece(segment, i));
      v[0] = value.x, v[1] = value.y, v[2] = value.z, v[3] = value.w;
    }
    sums.add(others);
  }
  return true;
}

// A warp's sums -> shared memory, [group][row][kSumPitch].
template <int kShape>
__device__ inline void share_sums(float* shared, int group, int thread, const TileSums<kShape>& sums) {
  using Sizes = TileSizes<kShape>;
  const int warp = thread / 32, lane = thread % 32;
  const int row_warp = warp / Sizes::kThis.output_warps, output_warp = warp % Sizes::kThis.output_warps;
  const int row = group * Sizes::kRows + row_warp * (Sizes::kRowTiles * 16) + lane / 4;
  float* const to =
      shared + row * Sizes::kSumPitch + output_warp * (Sizes::kOutputTiles * kTileOutputs) + lane % 4 * 2;
#pragma unroll
  for (int m = 0; m < Sizes::kRowTiles; ++m)
#pragma unroll
    for (int n = 0; n < Sizes::kOutputTiles; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float2*>(to + (m * 16 + half * 8) * Sizes::kSumPitch + n * kTileOutputs) =
            make_float2(sums.values[m][n][half * 2], sums.values[m][n][half * 2 + 1]);
}

// Adds the sums of `groups` groups up in order -> y. What y holds is asked for a few places ahead: its loads
// would not pass the stores before them.
template <int kShape, bool kPaired>
__device__ inline void store_shared(const TileArguments& arguments, int row_block, int output_block,
                                    const float* shared, int groups) {
  using Sizes = TileSizes<kShape>;
  constexpr int kColumns = Sizes::kOutputs / (kPaired ? 8 : 4);  // of four outputs
  constexpr int kItems = Sizes::kRows * kColumns;
  constexpr int kTogether = kPaired ? 1 : std::min(4, (kItems + Sizes::kThreads - 1) / Sizes::kThreads);
  const auto place_of = [&](int item) {
    return OutputPlace{static_cast<int64_t>(row_block) * Sizes::kRows + item / kColumns,
                       (output_block * kColumns + item % kColumns) * 4};
  };
  for (int first = static_cast<int>(threadIdx.x); first < kItems; first += kTogether * Sizes::kThreads) {
    FourFloats before[kTogether];
    if constexpr (!kPaired) {
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        load_before(arguments, place_of(min(first + i * Sizes::kThreads, kItems - 1)), before[i]);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int item = first + i * Sizes::kThreads;
      const OutputPlace place = place_of(item);
      if (item >= kItems || place.row >= arguments.rows || place.n >= arguments.outputs) continue;
      const int column = item % kColumns;
      // The tiles of the gate are the even ones.
      const float* from = shared + item / kColumns * Sizes::kSumPitch +
                          (kPaired ? column / 2 * 2 * kTileOutputs + column % 2 * 4 : column * 4);
      FourFloats sums = {}, up = {};
      for (int group = 0; group < groups; ++group, from += Sizes::kRows * Sizes::kSumPitch) {
        add_four(sums, from);
        if (kPaired) add_four(up, from + kTileOutputs);
      }
      if constexpr (kPaired) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[j] = swiglu_value(sums[j], up[j]);
      } else {
        finish_outputs(arguments, place, before[i], sums);
      }
      store_outputs(arguments, place, sums);
    }
  }
}

// One block: kRows x kOutputs of the result. blockIdx.x: the dimension with fewer blocks (rows or outputs)
// runs fastest, so that concurrent blocks share what they read; blockIdx.y: the segment, when split.
template <typename T, int kShape>
__global__ void __launch_bounds__(TileSizes<kShape>::kThreads)
    tile_kernel(const __grid_constant__ TileArguments arguments) {
  using Sizes = TileSizes<kShape>;
  extern __shared__ __align__(128) char shared[];
  const int block = static_cast<int>(blockIdx.x);
  const bool rows_first = arguments.row_blocks <= arguments.output_blocks;
  const int fast = rows_first ? arguments.row_blocks : arguments.output_blocks;
  const int row_block = rows_first ? block % fast : block / fast;
  const int output_block = rows_first ? block / fast : block % fast;
  const int group = static_cast<int>(threadIdx.x) / Sizes::kGroupThreads;
  const int thread = static_cast<int>(threadIdx.x) % Sizes::kGroupThreads;

  const bool split = gridDim.y > 1;
  int begin = 0, end = arguments.row_tiles;
  if (split || Sizes::kDepthGroups > 1) {
    begin = min((split ? static_cast<int>(blockIdx.y) : group) * arguments.segment_tiles, end);
    end = min(begin + arguments.segment_tiles, end);
  }
  char* const stages = shared + group * (Sizes::kStages * Sizes::kStageChunks * 16);
  TileLoader<kShape> loader(arguments, stages, thread, output_block, begin, end);
#pragma unroll
  for (int stage = 0; stage + 1 < Sizes::kStages; ++stage)
    loader.copy_weights(stage, begin + stage * Sizes::kStageTiles);
  wait_for_inputs();
  loader.find_rows(static_cast<int64_t>(row_block) * Sizes::kRows);
#pragma unroll
  for (int stage = 0; stage + 1 < Sizes::kStages; ++stage) {
    loader.copy_rows(stage, begin + stage * Sizes::kStageTiles);
    end_copy_group();  // the first one has all the weights above
  }
  TileSums<kShape> totals;
  run_through<T, kShape>(arguments, stages, loader, thread, begin, end, totals);

  if (split && !gather_segments<kShape>(arguments, block, totals)) return;
  __syncthreads();  // the sums take the place of the stages
  float* const sums = reinterpret_cast<float*>(shared);
  share_sums<kShape>(sums, group, thread, totals);
  __syncthreads();
  const int groups = Sizes::kDepthGroups > 1 ? arguments.segments : 1;
  if (arguments.paired)
    store_shared<kShape, true>(arguments, row_block, output_block, sums, groups);
  else
    store_shared<kShape, false>(arguments, row_block, output_block, sums, groups);
}

}  // namespace shoal::ops::cuda
