// The steps of the decode kernel: four warps with a chunk of 64 positions and one tile of rows, the query
// heads of one key/value head. For scores a warp has sixteen of the positions, for values a quarter of the
// dims.
#pragma once

#include "ops/cuda/attention/attention_int8.cuh"
#include "ops/cuda/attention/attention_partials.cuh"

namespace shoal::ops::cuda {

// A head as row `row` of a tile.
template <int kDim, typename T, int kPairs>
__device__ void store_row(T* tile, int row, const HeadPairs<kPairs>& head) {
  using Layout = Swizzle<kDim, T>;
  constexpr int kVectorPairs = Layout::kPerVector / 2;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int pair = HeadPairs<kPairs>::pair(i);
    if (2 * pair < kDim)
      *reinterpret_cast<Pair<T>*>(tile + Layout::at(row, pair / kVectorPairs) + pair % kVectorPairs * 2) = {
          narrowed_value<T>(head.x[i].x), narrowed_value<T>(head.x[i].y)};
  }
}

// Of this warp's sixteen positions of a chunk, for rows g = lane / 4 and g + 8 of the tile: columns 8 n + 2
// (lane % 4)
// + j, row g + 8 r at [n][2 r + j].
struct WarpScores {
  float score[2][4] = {};
  bool seen[2][2];
  float top[2] = {kNothing, kNothing};  // of the row: first over the warp's positions, then over the chunk's
};

// eights: of the tile's rows that have heads; the others' results are left as they are. key_scale: of
// position number lane % 16 of the warp's; only for pages that have scales.
template <int kDim, typename P>
__device__ void score_keys(WarpScores& scores, const uint32_t (&q)[kDim / 16][4], const P* keys,
                           const ChunkRange& range, int chunk, float scale, int eights,
                           [[maybe_unused]] float key_scale) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    uint32_t b[4];
    load_page_keys<kDim>(b, keys, warp * kWarpKeys, step);
    multiply<Operand<P>>(scores.score[0], q[step], b[0], b[1]);
    multiply<Operand<P>>(scores.score[1], q[step], b[2], b[3]);
  }
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int key = n * 8 + lane % 4 * 2 + j;
      scores.seen[n][j] = range.sees(chunk * kChunk + warp * kWarpKeys + key);
      float by = 1;
      if constexpr (PageFormat<P>::kScaled) by = __shfl_sync(~0u, key_scale, key);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (r >= eights) break;
        float& score = scores.score[n][2 * r + j];
        score = scaled_score(score, scale);
        if constexpr (PageFormat<P>::kScaled) score = scaled_score(score, by);
        if (scores.seen[n][j]) scores.top[r] = fmaxf(scores.top[r], score);
      }
    }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (r >= eights) break;
    float& top = scores.top[r];
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
  }
}

// Puts the weights where all warps find them. Between two barriers: maxima of all warps before, weights
// after.
template <typename T>
__device__ void weigh_keys(WarpScores& scores, const float (&maxima)[kTileWarps][kTileRows], int eights,
                           T* weights) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (r >= eights) break;
    const int row = lane / 4 + 8 * r;
#pragma unroll
    for (int w = 0; w < kTileWarps; ++w) scores.top[r] = fmaxf(scores.top[r], maxima[w][row]);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      float p[2];
#pragma unroll
      for (int j = 0; j < 2; ++j)
        p[j] = scores.seen[n][j] ? weight_of(scores.score[n][2 * r + j], scores.top[r]) : 0.0f;
      T* const to = weights + Swizzle<kChunk>::at(row, warp * 2 + n) + lane % 4 * 2;
      *reinterpret_cast<uint32_t*>(to) = packed<T>(p[0], p[1]);
    }
  }
}

// Sums of rows g and g + 8 over a chunk, or over those so far: of the weights at [2 r], of 8 kTiles dims'
// values.
template <int kTiles>
struct WarpSums {
  float weights[4] = {}, values[kTiles][4] = {};
};

template <int kDim, int kTiles, typename P>
__device__ void sum_values(WarpSums<kTiles>& sums, const Operand<P>* weights, const ValueTile<P>& values,
                           int first_dim) {
  using T = Operand<P>;
#pragma unroll
  for (int step = 0; step < kChunk / 16; ++step) {
    uint32_t a[4];
    load_left<kChunk>(a, weights, 0, step);
    multiply<T>(sums.weights, a, packed_ones<T>(), packed_ones<T>());
#pragma unroll
    for (int n = 0; n < kTiles; n += 2) {
      uint32_t b[4];
      load_page_values<kDim>(b, values, first_dim + n * 8, step);
      multiply<T>(sums.values[n], a, b[0], b[1]);
      multiply<T>(sums.values[n + 1], a, b[2], b[3]);
    }
  }
  arrange<P>(sums.values);
}

template <int kTiles>
struct RunningSums {
  float maximum[2] = {kNothing, kNothing};
  WarpSums<kTiles> sums;

  __device__ void merge(const float (&top)[2], const WarpSums<kTiles>& chunk, int eights) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (r >= eights) break;
      const MergeWeights by = merge_maximum(maximum[r], top[r]);
      sums.weights[2 * r] = merged(sums.weights[2 * r], chunk.weights[2 * r], by);
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int j = 2 * r; j < 2 * r + 2; ++j)
          sums.values[n][j] = merged(sums.values[n][j], chunk.values[n][j], by);
    }
  }

  template <typename P>
  __device__ void store(const Out& out, int row, const HeadTile& tile, int dims, int first_dim) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int head = lane / 4 + 8 * r;
      if (head >= tile.heads) continue;
      const float factor = share(sums.weights[2 * r]);
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
        out.store(row, (tile.first_head + head) * dims + first_dim + lane_dim<P>(n),
                  sums.values[n][2 * r] * factor, sums.values[n][2 * r + 1] * factor);
    }
  }
};

// Leaves a chunk's results for the merge, as chunk number `index`.
template <typename P, int kTiles>
__device__ void park(const Partials& partials, int64_t index, const HeadTile& tile, int heads_per_tile,
                     int dims, int first_dim, const float (&top)[2], const WarpSums<kTiles>& chunk) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int head = lane / 4 + 8 * r;
    if (head >= tile.heads) continue;
    const int64_t at = index * heads_per_tile + head;
    if (first_dim == 0 && lane % 4 == 0)
      *reinterpret_cast<float2*>(partials.sums + 2 * at) = {top[r], chunk.weights[2 * r]};
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
      *reinterpret_cast<float2*>(partials.values + at * dims + first_dim + lane_dim<P>(n)) = {
          chunk.values[n][2 * r], chunk.values[n][2 * r + 1]};
  }
}

}  // namespace shoal::ops::cuda
