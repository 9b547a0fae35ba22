// From the sums of wide.cuh to results in memory, as tile_store.cuh computes them.
#pragma once

#include "ops/cuda/tile_store.cuh"
#include "ops/cuda/wide_load.cuh"

namespace shoal::ops::cuda {

// Writes the sums of a thread's 16 rows by 8 kTiles outputs, from tile kFirst on, as rows of `pitch` floats.
template <int kFirst, int kTiles, int kSums>
__device__ inline void share_sums(float* shared, int pitch, const float (&sums)[kSums]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  float* const to = shared + lane / 4 * pitch + lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(to + half * 8 * pitch + n * kTileOutputs) =
          make_float2(sums[(kFirst + n) * 4 + half * 2], sums[(kFirst + n) * 4 + half * 2 + 1]);
}

// Where, among the outputs of a block side by side, the sums of four results begin: of a pair, those of the
// gate; the up's stand a tile behind them.
template <bool kPaired>
__device__ inline int sums_of_four(int column) {
  return kPaired ? column / 2 * 2 * kTileOutputs + column % 2 * 4 : column * 4;
}

// A warp's rows and one chunk of its outputs, which lie in `shared`. Places are asked for what they hold
// before any of them is written.
template <bool kPaired>
__device__ inline void store_chunk(const TileArguments& arguments, const float* shared, int pitch,
                                   int64_t row, int n) {
  constexpr int kColumns = kWideChunk / (kPaired ? 8 : 4), kPlaces = 16 * kColumns / 32;
  const int lane = static_cast<int>(threadIdx.x % 32), column = lane % kColumns;
  const auto place_of = [&](int i) {
    return OutputPlace{row + lane / kColumns + i * (32 / kColumns), n + column * 4};
  };
  if (place_of(0).n >= arguments.outputs) return;
  FourFloats before[kPlaces];
  if constexpr (!kPaired) {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) load_before(arguments, place_of(i), before[i]);
  }
#pragma unroll 1
  for (int i = 0; i < kPlaces; ++i) {
    const OutputPlace place = place_of(i);
    if (place.row >= arguments.rows) return;
    const float* const from = shared + (place.row - row) * pitch + sums_of_four<kPaired>(column);
    FourFloats sums;
    load_four(from, sums);
    if constexpr (kPaired) {
      FourFloats up;
      load_four(from + kTileOutputs, up);
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = swiglu_value(sums[j], up[j]);
    } else {
      FourFloats held;
#pragma unroll
      for (int k = 0; k < kPlaces; ++k)
        if (k == i)
#pragma unroll
          for (int j = 0; j < 4; ++j) held[j] = before[k][j];
      finish_outputs(arguments, place, held, sums);
    }
    store_outputs(arguments, place, sums);
  }
}

// A warp's sums of whole segments' totals -> y, through its own piece of shared memory. row: its first; n:
// the first output of the block.
template <int kShape, bool kPaired>
__device__ inline void store_totals(const TileArguments& arguments, float* shared, int64_t row, int n,
                                    const float (&totals)[WideSizes<kShape>::kSums]) {
  using Sizes = WideSizes<kShape>;
  constexpr int kChunks = Sizes::kOutputs / kWideChunk, kTiles = kWideChunk / kTileOutputs;
#pragma unroll 1
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    __syncwarp();  // the chunk before has been read
    [&]<int... kChunk>(std::integer_sequence<int, kChunk...>) {
      ((chunk == kChunk ? share_sums<kChunk * kTiles, kTiles>(shared, Sizes::kSumPitch, totals) : void()),
       ...);
    }(std::make_integer_sequence<int, kChunks>());
    __syncwarp();
    store_chunk<kPaired>(arguments, shared, Sizes::kSumPitch, row,
                         n + chunk * (kPaired ? kWideChunk / 2 : kWideChunk));
  }
}

// The segments' sums of four results, added in order. They lie in the blocks of the cluster, [segment of the
// block][row][kSumPitch]; at: of segment 0.
template <int kShape>
__device__ inline void gather_four(const WideArguments& arguments, uint32_t at, FourFloats& total) {
  using Sizes = WideSizes<kShape>;
  constexpr int kTogether = 8;
  const int local = arguments.plan.local_segments, segments = arguments.tile.segments;
#pragma unroll
  for (float& value : total) value = 0.0f;
  for (int first = 0; first < segments; first += kTogether) {
    float4 sums[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int segment = first + i, rank = segment / local;
      if (segment < segments)
        sums[i] = load_from_cluster(address_in(
            at + static_cast<uint32_t>((segment - rank * local) * Sizes::kRows * Sizes::kSumPitch * 4),
            static_cast<uint32_t>(rank)));
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (first + i >= segments) break;
      const float four[4] = {sums[i].x, sums[i].y, sums[i].z, sums[i].w};
#pragma unroll
      for (int j = 0; j < 4; ++j) total[j] = __fadd_rn(total[j], four[j]);
    }
  }
}

// The block's share of the result of its cluster -> y, by all its threads.
template <int kShape, bool kPaired>
__device__ inline void store_share(const WideArguments& arguments, uint32_t sums_at, int64_t first_row,
                                   int output_block) {
  using Sizes = WideSizes<kShape>;
  constexpr int kColumns = Sizes::kOutputs / (kPaired ? 8 : 4);  // of four results
  const TileArguments& a = arguments.tile;
  const int items = static_cast<int>(min(int64_t{Sizes::kRows}, a.rows - first_row)) * kColumns;
  const int share = (items + arguments.cluster - 1) / arguments.cluster;
  const int begin = static_cast<int>(rank_in_cluster()) * share, end = min(begin + share, items);
  for (int item = begin + static_cast<int>(threadIdx.x); item < end; item += Sizes::kThis.threads()) {
    const int row = item / kColumns, column = item % kColumns;
    const OutputPlace place{first_row + row, (output_block * kColumns + column) * 4};
    if (place.n >= a.outputs) continue;
    const uint32_t at =
        sums_at + static_cast<uint32_t>((row * Sizes::kSumPitch + sums_of_four<kPaired>(column)) * 4);
    FourFloats sums;
    if constexpr (kPaired) {
      FourFloats up;
      gather_four<kShape>(arguments, at, sums);
      gather_four<kShape>(arguments, at + kTileOutputs * 4, up);
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = swiglu_value(sums[j], up[j]);
    } else {
      FourFloats before;
      load_before(a, place, before);
      gather_four<kShape>(arguments, at, sums);
      finish_outputs(a, place, before, sums);
    }
    store_outputs(a, place, sums);
  }
}

}  // namespace shoal::ops::cuda
