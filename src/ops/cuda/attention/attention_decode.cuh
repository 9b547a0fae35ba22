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

// Query heads of a block: the columns of an mma, whose rows are positions or dims. A lane has two of them.
constexpr int kDecodeHeads = 8;

// Of this warp's sixteen positions of a chunk: of position lane / 4 + 8 h and head 2 (lane % 4) + j at
// [h][j].
struct WarpScores {
  float score[2][2];
  float reference[2][2];  // what the maximum is of: the score, or of 8 bits also the value's scale
  bool seen[2];
  float top[2];  // of a head: first over the warp's positions, then over the chunk's
};

// q: right operands.  terms: of the chunk's positions, offset: of q; only for pages that have scales.
template <int kDim, typename P>
__device__ void score_keys(WarpScores& scores, const uint32_t (&q)[kDim / 16][2], const P* keys,
                           const ChunkRange& range, int chunk, float scale,
                           [[maybe_unused]] const PositionTerms* terms,
                           [[maybe_unused]] const ByteOffset& offset) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  float products[4] = {};
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    uint32_t a[4];
    load_left_keys<kDim>(a, keys, warp * kWarpKeys, step);
    multiply<Operand<P>>(products, a, q[step][0], q[step][1]);
  }
  const int2 seen = range.within(chunk);
  scores.top[0] = scores.top[1] = kNothing;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int key = warp * kWarpKeys + lane / 4 + 8 * h;
    scores.seen[h] = seen.x <= key && key <= seen.y;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float &score = scores.score[h][j], &reference = scores.reference[h][j];
      if constexpr (PageFormat<P>::kScaled) {
        const PositionTerms of_key = terms[key];
        score = scaled_score(__fadd_rn(products[2 * h + j], offset.of_row[j]), of_key.key);
        reference = __fadd_rn(score, of_key.value);
      } else {
        reference = score = scaled_score(products[2 * h + j], scale);
      }
      if (scores.seen[h]) scores.top[j] = fmaxf(scores.top[j], reference);
    }
  }
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2)
#pragma unroll
    for (int j = 0; j < 2; ++j)
      scores.top[j] = fmaxf(scores.top[j], __shfl_xor_sync(~0u, scores.top[j], distance));
}

// What warps leave for each other: a number of each, by head.
struct alignas(16) ByWarp {
  float of_head[kDecodeHeads][kTileWarps];

  // By all lanes, which hold those of their two heads.
  __device__ void set(int warp, float first, float second) {
    if (threadIdx.x % 32 >= 4) return;
    float* const own = of_head[threadIdx.x % 4 * 2] + warp;
    own[0] = first, own[kTileWarps] = second;
  }
  // Of the lane's head j.
  __device__ float4 of(int j) const {
    return *reinterpret_cast<const float4*>(of_head[static_cast<int>(threadIdx.x % 4) * 2 + j]);
  }
};

// Puts the weights where all warps find them, [position][head]; of 8 bits also the sums of this warp's.
// Between two barriers: maxima of all warps before, weights after.
template <typename P>
__device__ void weigh_keys(WarpScores& scores, const ByWarp& maxima, Operand<P>* weights,
                           [[maybe_unused]] ByWarp* sums) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const float4 of_warps = maxima.of(j);
    scores.top[j] = fmaxf(fmaxf(of_warps.x, of_warps.y), fmaxf(of_warps.z, of_warps.w));
  }
  const auto weight = [&](const float(&of)[2][2], int h, int j) {
    return scores.seen[h] ? weight_of(of[h][j], scores.top[j]) : 0.0f;
  };
#pragma unroll
  for (int h = 0; h < 2; ++h)
    reinterpret_cast<uint32_t*>(
        weights)[(warp * kWarpKeys + lane / 4 + 8 * h) * kDecodeHeads / 2 + lane % 4] =
        packed<Operand<P>>(weight(scores.reference, h, 0), weight(scores.reference, h, 1));
  if constexpr (PageFormat<P>::kScaled) {
    float sum[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      sum[j] = __fadd_rn(weight(scores.score, 0, j), weight(scores.score, 1, j));
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2)
        sum[j] = __fadd_rn(sum[j], __shfl_xor_sync(~0u, sum[j], distance));
    }
    sums->set(warp, sum[0], sum[1]);
  }
}

// Sums over a chunk, or over those so far, of the lane's heads j: of their weights, and of the values of
// sixteen dims for each tile: of the lane's dims at [2 d + j] (lane_dim).
template <int kTiles>
struct WarpSums {
  float weights[2] = {}, values[kTiles][4] = {};
};

// The dims of a tile of sixteen that a lane has: d = 0, 1. Of 8 bits neighbours.
template <typename P>
__device__ int lane_dim(int tile, int d) {
  const int row = static_cast<int>(threadIdx.x % 32) / 4;
  return tile * 16 + (PageFormat<P>::kScaled ? 2 * row + d : row + 8 * d);
}

// weight_sums: of each warp's positions, as weigh_keys left them; only for pages that have scales.
template <int kDim, int kTiles, typename P>
__device__ void sum_values(WarpSums<kTiles>& sums, const Operand<P>* weights, const P* values, int first_dim,
                           [[maybe_unused]] const ByWarp* weight_sums) {
  using T = Operand<P>;
  constexpr int kSteps = kChunk / 16;
  uint32_t b[kSteps][2];
#pragma unroll
  for (int step = 0; step < kSteps; step += 2) {
    uint32_t two[4];
    load_matrices_transposed(
        two, shared_address(weights + (step * 16 + static_cast<int>(threadIdx.x % 32)) * kDecodeHeads));
    b[step][0] = two[0], b[step][1] = two[1], b[step + 1][0] = two[2], b[step + 1][1] = two[3];
  }
  float all[2];
  sum_columns<T>(all, b);
#pragma unroll
  for (int step = 0; step < kSteps; step += 2)
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      uint32_t a[2][4];
      load_left_values<kDim>(a, values, first_dim + n * 16, step);
      multiply<T>(sums.values[n], a[0], b[step][0], b[step][1]);
      multiply<T>(sums.values[n], a[1], b[step + 1][0], b[step + 1][1]);
    }
  if constexpr (PageFormat<P>::kScaled) {
    const ByteOffset offset(all);
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums.values[n][i] = __fadd_rn(sums.values[n][i], offset.of_row[i % 2]);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float4 of_warps = weight_sums->of(j);
      sums.weights[j] = sum_of_chunk(of_warps.x, of_warps.y, of_warps.z, of_warps.w);
    }
  } else {
    sums.weights[0] = all[0], sums.weights[1] = all[1];
  }
}

template <int kTiles>
struct RunningSums {
  float maximum[2] = {kNothing, kNothing};
  WarpSums<kTiles> sums;

  __device__ void merge(const float (&top)[2], const WarpSums<kTiles>& chunk) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const MergeWeights by = merge_maximum(maximum[j], top[j]);
      sums.weights[j] = merged(sums.weights[j], chunk.weights[j], by);
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int i = j; i < 4; i += 2) sums.values[n][i] = merged(sums.values[n][i], chunk.values[n][i], by);
    }
  }

  template <typename P>
  __device__ void store(const Out& out, int row, const HeadTile& tile, int dims, int first_dim) const {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int head = static_cast<int>(threadIdx.x % 4) * 2 + j;
      if (head >= tile.heads) continue;
      const float factor = share(sums.weights[j]);
      const int column = (tile.first_head + head) * dims + first_dim;
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const float x = sums.values[n][j] * factor, y = sums.values[n][2 + j] * factor;
        if constexpr (PageFormat<P>::kScaled)
          out.store(row, column + lane_dim<P>(n, 0), x, y);
        else
          out.store_one(row, column + lane_dim<P>(n, 0), x),
              out.store_one(row, column + lane_dim<P>(n, 1), y);
      }
    }
  }
};

// Leaves a chunk's results for the merge, as chunk number `index`.
template <typename P, int kTiles>
__device__ void park(const Partials& partials, int64_t index, const HeadTile& tile, int heads_per_tile,
                     int dims, int first_dim, const float (&top)[2], const WarpSums<kTiles>& chunk) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int head = lane % 4 * 2 + j;
    if (head >= tile.heads) continue;
    const int64_t at = index * heads_per_tile + head;
    if (first_dim == 0 && lane < 4)
      *reinterpret_cast<float2*>(partials.sums + 2 * at) = {top[j], chunk.weights[j]};
    float* const values = partials.values + at * dims + first_dim;
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
      values[lane_dim<P>(n, 0)] = chunk.values[n][j], values[lane_dim<P>(n, 1)] = chunk.values[n][2 + j];
  }
}

}  // namespace shoal::ops::cuda
