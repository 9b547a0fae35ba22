// From the sums of wide.cuh to results in memory, as tile_store.cuh computes them.
#pragma once

#include "ops/cuda/gemm/operands/quad_store.cuh"
#include "ops/cuda/gemm/operands/tile_store.cuh"
#include "ops/cuda/gemm/sm90/wide_load.cuh"

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

// Places of y that belong to a thread's sums: rows `row` and row + 8, and of every eight outputs, from n on,
// two.
struct ThreadPlaces {
  int64_t row;
  int first, n;  // the block's first output, the thread's

  // first_row: the warp's.
  __device__ ThreadPlaces(int64_t first_row, int first_output)
      : row(first_row + static_cast<int>(threadIdx.x % 32 / 4)),
        first(first_output),
        n(first_output + static_cast<int>(threadIdx.x % 4) * 2) {}
};

__device__ inline float2 load_pair(const float* from) { return *reinterpret_cast<const float2*>(from); }

__device__ inline void store_pair(const ProductEpilogue& e, int64_t at, float low, float high) {
  if (e.y_dtype == DType::f32)
    *reinterpret_cast<float2*>(static_cast<float*>(e.y) + at) = make_float2(low, high);
  else
    *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(e.y) + at) = rounded_pair(e.y_dtype, low, high);
}

__device__ inline void store_quad(const ProductEpilogue& e, int64_t at, const float4& v) {
  if (e.y_dtype == DType::f32)
    store_past_first_cache(static_cast<float*>(e.y) + at, v);
  else
    store_past_first_cache(static_cast<uint16_t*>(e.y) + at,
                           uint2{rounded_pair(e.y_dtype, v.x, v.y), rounded_pair(e.y_dtype, v.z, v.w)});
}

// v + bias, times scale, for a thread's part of `tiles` rows of tiles.
template <int kSums>
__device__ inline void apply_factors(const ProductEpilogue& e, int n, int tiles, float (&v)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums / 4 && e.bias; ++i) {
    if (i >= tiles) break;
    const float2 bias = load_pair(e.bias + n + i * kTileOutputs);
    v[4 * i] = __fadd_rn(v[4 * i], bias.x), v[4 * i + 1] = __fadd_rn(v[4 * i + 1], bias.y);
    v[4 * i + 2] = __fadd_rn(v[4 * i + 2], bias.x), v[4 * i + 3] = __fadd_rn(v[4 * i + 3], bias.y);
  }
#pragma unroll
  for (int i = 0; i < kSums / 4 && e.scale; ++i) {
    if (i >= tiles) break;
    const float2 scale = load_pair(e.scale + n + i * kTileOutputs);
    v[4 * i] = __fmul_rn(v[4 * i], scale.x), v[4 * i + 1] = __fmul_rn(v[4 * i + 1], scale.y);
    v[4 * i + 2] = __fmul_rn(v[4 * i + 2], scale.x), v[4 * i + 3] = __fmul_rn(v[4 * i + 3], scale.y);
  }
}

template <int kSums>
__device__ inline void apply_snake(const float* alphas, int n, int tiles, float (&v)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums / 4; ++i) {
    if (i >= tiles) break;
    const float2 alpha = load_pair(alphas + n + i * kTileOutputs);
    const float low = snake_inverse(alpha.x), high = snake_inverse(alpha.y);
    v[4 * i] = near_snake(v[4 * i], alpha.x, low), v[4 * i + 1] = near_snake(v[4 * i + 1], alpha.y, high);
    v[4 * i + 2] = near_snake(v[4 * i + 2], alpha.x, low);
    v[4 * i + 3] = near_snake(v[4 * i + 3], alpha.y, high);
  }
}

// The last of an odd number of tiles.
template <bool kAdds, int kSums>
__device__ inline void store_last_tile(const TileArguments& a, const ThreadPlaces& places, int tiles,
                                       const float (&v)[kSums]) {
  constexpr int kLast = kSums / 4 - 1;
  const ProductEpilogue& e = a.epilogue;
  if (kLast >= tiles) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (places.row + half * 8 >= a.rows) break;
    const int64_t at = (places.row + half * 8) * e.y_stride + places.n + kLast * kTileOutputs;
    const float2 before = kAdds && e.accumulate ? load_pair(static_cast<const float*>(e.y) + at) : float2{};
    const float low = v[4 * kLast + 2 * half], high = v[4 * kLast + 2 * half + 1];
    store_pair(e, at, kAdds ? __fadd_rn(before.x, low) : low, kAdds ? __fadd_rn(before.y, high) : high);
  }
}

// v -> y; kAdds: plus the value in y, or plus 0 if y is overwritten (no product is -0).
template <bool kAdds, int kSums>
__device__ inline void store_sums(const TileArguments& a, const ThreadPlaces& places, int tiles,
                                  const float (&v)[kSums]) {
  constexpr int kChunks = kSums / 8;  // of 16 outputs
  constexpr int kTogether = 4;        // chunks whose old values are asked for at the same time
  const ProductEpilogue& e = a.epilogue;
  const bool exists[] = {places.row < a.rows, places.row + 8 < a.rows};
  const auto place_of = [&](int chunk, int half) {
    return (places.row + half * 8) * e.y_stride + places.first + chunk * 16 + quad_column();
  };
  const auto is_there = [&](int chunk, int half) {
    return chunk < kChunks && chunk * 16 + quad_column() < tiles * kTileOutputs && exists[half];
  };
  const float* const held = kAdds && e.accumulate ? static_cast<const float*>(e.y) : nullptr;  // then f32
#pragma unroll
  for (int first = 0; first < kChunks; first += kTogether) {
    FourFloats before[kTogether][2];
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        before[i][half][0] = before[i][half][1] = before[i][half][2] = before[i][half][3] = 0.0f;
        if (held && is_there(first + i, half)) load_four(held + place_of(first + i, half), before[i][half]);
      }
#pragma unroll
    for (int i = 0; i < kTogether && first + i < kChunks; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float4 quad = quad_of(v, first + i, half);
        const FourFloats& old = before[i][half];
        if constexpr (kAdds)
          quad = {__fadd_rn(old[0], quad.x), __fadd_rn(old[1], quad.y), __fadd_rn(old[2], quad.z),
                  __fadd_rn(old[3], quad.w)};
        if (is_there(first + i, half)) store_quad(e, place_of(first + i, half), quad);
      }
  }
  if constexpr (kSums % 8 != 0) store_last_tile<kAdds>(a, places, tiles, v);
}

// The sums of a segment -> [segment][row][output].
template <int kSums>
__device__ inline void store_segment(const TileArguments& a, int segment, int64_t row, int n,
                                     const float (&sums)[kSums]) {
  static_assert(kSums % 8 == 0);
  const ThreadPlaces places(row, n);
  float* const to = a.partial + (segment * a.rows + places.row) * a.outputs + n + quad_column();
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int chunk = 0; chunk < kSums / 8; ++chunk) {
      const float4 quad = quad_of(sums, chunk, half);
      if (places.row + half * 8 < a.rows && n + chunk * 16 + quad_column() < a.outputs)
        store_past_first_cache(to + half * 8 * a.outputs + chunk * 16, quad);
    }
}

// Of gates and the ups one tile after them.
template <int kSums>
__device__ inline void swiglu_of(const float (&totals)[kSums], float (&results)[kSums / 2]) {
#pragma unroll
  for (int i = 0; i < kSums / 2; ++i)
    results[i] = swiglu_value(totals[i / 4 * 8 + i % 4], totals[i / 4 * 8 + 4 + i % 4]);
}

// Totals with all that happens to them before they are added to y. n: the first output of the block.
template <int kSums>
__device__ inline void finish_plain(const TileArguments& a, int n, float (&totals)[kSums]) {
  const int first = ThreadPlaces(0, n).n, tiles = (a.outputs - n) / kTileOutputs;
  apply_factors(a.epilogue, first, tiles, totals);
  if (a.snake_alpha) apply_snake(a.snake_alpha, first, tiles, totals);
}

// A warp's sums of whole segments' totals -> y, from registers. row: its first; n: the first output of the
// block.
template <bool kPaired, int kSums>
__device__ inline void store_plain(const TileArguments& a, int64_t row, int n, float (&totals)[kSums]) {
  const ThreadPlaces places(row, n);
  const int tiles = (a.outputs - n) / kTileOutputs;  // that exist
  if constexpr (kPaired) {
    float results[kSums / 2];
    swiglu_of(totals, results);
    store_sums<false>(a, places, tiles, results);
  } else {
    finish_plain(a, n, totals);
    store_sums<true>(a, places, tiles, totals);
  }
}

// The position, among the adjacent outputs of a block, of the first of four sums: for a pair, of the gate;
// the up's are one tile later.
template <bool kPaired>
__device__ inline int sums_of_four(int column) {
  return kPaired ? column / 2 * 2 * kTileOutputs + column % 2 * 4 : column * 4;
}

// A warp's rows and one chunk of its outputs, in `shared`. All old values are read before any new one is
// written.
template <bool kPaired, int kChunk>
__device__ inline void store_chunk(const TileArguments& arguments, const float* shared, int pitch,
                                   int64_t row, int n) {
  constexpr int kColumns = kChunk / (kPaired ? 8 : 4), kPlaces = 16 * kColumns / 32;
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
                                    float (&totals)[WideSizes<kShape>::kSums]) {
  using Sizes = WideSizes<kShape>;
  if (arguments.plain) return store_plain<kPaired>(arguments, row, n, totals);
  constexpr int kChunk = Sizes::kChunk, kChunks = Sizes::kOutputs / kChunk, kTiles = kChunk / kTileOutputs;
#pragma unroll 1
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    __syncwarp();  // the chunk before has been read
    [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
      ((chunk == kIndex ? share_sums<kIndex * kTiles, kTiles>(shared, Sizes::kSumPitch, totals) : void()),
       ...);
    }(std::make_integer_sequence<int, kChunks>());
    __syncwarp();
    store_chunk<kPaired, kChunk>(arguments, shared, Sizes::kSumPitch, row,
                                 n + chunk * (kPaired ? kChunk / 2 : kChunk));
  }
}

// The segments' sums of four results, added in order. They are in the blocks of the cluster, [segment of the
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
