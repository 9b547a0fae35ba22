// What the kernels of paged_attention() for any rows share: blocks of up to 64 rows (positions times query
// heads of one key/value head), sixteen per warp, which share the chunks of keys in shared memory.
#pragma once

#include "ops/cuda/attention/attention_int8.cuh"
#include "ops/cuda/device/launch.cuh"

namespace shoal::ops::cuda {

constexpr int kBlockRows = kTileWarps * kTileRows;

template <typename P>
struct PrefillArgs {
  Rows rows;
  Pages<P> pages;
  Out out;
  const Operand<P>* q;  // [rows, heads, kDim]
  float scale;
  HeadTiling tiling;
  int rows_per_block;  // of the batch
  int row_blocks;
  bool skip_single_rows;
  bool halves;  // BlockOrder
};

// Rows of one sequence. The batch's rows are cut at multiples of rows_per_block and at the borders of
// sequences: a block for every multiple, and one for every sequence (idle when that begins at a multiple).
struct Piece {
  int sequence, first, count;

  template <typename P>
  __device__ Piece(const PrefillArgs<P>& args, int block) {
    const int per_block = args.rows_per_block;
    const int32_t* const offsets = args.rows.offsets;
    const bool cut = block < args.row_blocks;
    sequence = cut ? args.rows.sequences[block * per_block] : block - args.row_blocks;
    const int begin = offsets[sequence], end = offsets[sequence + 1];
    first = cut ? block * per_block : begin;
    count = min((first / per_block + 1) * per_block, end) - first;
    if (!cut && first % per_block == 0) count = 0;
    if (args.skip_single_rows && end - begin == 1) count = 0;
  }
};

// The positions that some of several rows see, inclusive; none: last below first.
struct Seen {
  int first = INT32_MAX, last = -1;

  __device__ void add(const Rows& rows, int position) {
    if (position < 0) return;
    first = min(first, rows.first_seen(position));
    last = max(last, position);
  }
  __device__ Seen over_warp() const {
    Seen all;
    all.first = __reduce_min_sync(~0u, first);
    all.last = __reduce_max_sync(~0u, last);
    return all;
  }
  __device__ bool touches(int chunk) const { return first < (chunk + 1) * kChunk && last >= chunk * kChunk; }
};

// Of a warp's rows and a chunk.
struct RowWeights {
  uint32_t left[kChunk / 16][4];  // as left operands: pairs of columns packed
  float top[2];                   // the rows' maxima
  float sums[2];                  // of the weights
};

// kAll: the rows see all of the chunk. terms: of the chunk, where pages have scales.
template <typename P, bool kAll>
__device__ void weigh(const Rows& rows, int chunk, float scale, [[maybe_unused]] const PositionTerms* terms,
                      const int (&positions)[2], float (&scores)[8][4], RowWeights& weights) {
  constexpr bool kScaled = PageFormat<P>::kScaled;
  const int column = chunk * kChunk + static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int last = positions[r], first = rows.first_seen(last);
    const auto at = [&](int n, int j) { return column + 8 * n + j; };
    const auto seen = [&](int n, int j) { return kAll || (first <= at(n, j) && at(n, j) <= last); };
    const auto reference = [&](int n, int j) {
      const float score = scores[n][2 * r + j];
      if constexpr (kScaled) return __fadd_rn(score, terms[at(n, j) - chunk * kChunk].value);
      return score;
    };
    float& top = weights.top[r];
    top = kNothing;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& score = scores[n][2 * r + j];
        score = scaled_score(score, kScaled ? terms[at(n, j) - chunk * kChunk].key : scale);
        if (seen(n, j)) top = fmaxf(top, reference(n, j));
      }
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    const auto weight = [&](bool is_seen, float of) { return is_seen ? weight_of(of, top) : 0.0f; };
#pragma unroll
    for (int n = 0; n < 8; ++n)
      weights.left[n / 2][n % 2 * 2 + r] =
          packed<Operand<P>>(weight(seen(n, 0), reference(n, 0)), weight(seen(n, 1), reference(n, 1)));
    if constexpr (kScaled) {
      const auto own = [&](int n, int j) { return weight(seen(n, j), scores[n][2 * r + j]); };
      const auto sixteen = [&](int n) {  // in the order of decoding: positions 8 apart, then by halves
        const float even = __fadd_rn(own(n, 0), own(n + 1, 0)), odd = __fadd_rn(own(n, 1), own(n + 1, 1));
        const float four = __fadd_rn(even, odd), eight = __fadd_rn(four, __shfl_xor_sync(~0u, four, 1));
        return __fadd_rn(eight, __shfl_xor_sync(~0u, eight, 2));
      };
      weights.sums[r] = sum_of_chunk(sixteen(0), sixteen(2), sixteen(4), sixteen(6));
    }
  }
  if constexpr (!kScaled) {
    float sums[4] = {};
#pragma unroll
    for (int step = 0; step < kChunk / 16; ++step)
      multiply<Operand<P>>(sums, weights.left[step], packed_ones<Operand<P>>(), packed_ones<Operand<P>>());
    weights.sums[0] = sums[0], weights.sums[1] = sums[2];
  }
}

// The first of this lane's two dims of tile n.
template <typename P>
__device__ int column_dim(int n) {
  const int quarter = static_cast<int>(threadIdx.x % 4);
  return PageFormat<P>::kScaled ? n / 2 * 16 + quarter * 4 + n % 2 * 2 : n * 8 + quarter * 2;
}

// Which piece and which tile of heads a block takes. Late pieces see the most and come first. halves: there
// are hardly more than two blocks a multiprocessor; then the second half begins with the earliest, so that
// each multiprocessor gets as many chunks.
struct BlockOrder {
  int piece, tile;

  __device__ explicit BlockOrder(bool halves) {
    const int tiles = static_cast<int>(gridDim.x), blocks = tiles * static_cast<int>(gridDim.y);
    const int own = static_cast<int>(blockIdx.y) * tiles + static_cast<int>(blockIdx.x);
    const int half = (blocks + 1) / 2, place = !halves || own < half ? own : blocks - 1 - (own - half);
    piece = static_cast<int>(gridDim.y) - 1 - place / tiles;
    tile = place % tiles;
  }
};

// What a block works on. Row m of it is query head m % heads of the piece's row m / heads.
template <typename P>
struct PrefillBlock {
  const PrefillArgs<P>& args;
  HeadTile tile;
  Piece piece;
  int used;          // rows
  Seen seen;         // by all of them
  int lane_key;      // of the positions of every chunk, that this lane copies
  int block_row[2];  // this lane's rows, and their positions
  int positions[2];
  int all_from = 0, all_to = INT32_MAX;  // what all rows of the warp see

  __device__ explicit PrefillBlock(const PrefillArgs<P>& a) : PrefillBlock(a, BlockOrder(a.halves)) {}
  __device__ PrefillBlock(const PrefillArgs<P>& a, const BlockOrder& order)
      : args(a),
        tile(a.tiling.tile(a.rows, order.tile)),
        piece(a, order.piece),
        used(piece.count * tile.heads) {
    const Rows& rows = a.rows;
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    Seen seen_by_lane;
    for (int i = lane; i < piece.count; i += 32) seen_by_lane.add(rows, rows.positions[piece.first + i]);
    seen = seen_by_lane.over_warp();
    lane_key = warp * kWarpKeys + lane % kWarpKeys;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      block_row[r] = warp * kTileRows + lane / 4 + 8 * r;
      positions[r] = block_row[r] < used ? rows.positions[piece.first + block_row[r] / tile.heads] : -1;
      if (block_row[r] >= used) continue;
      all_from = max(all_from, rows.first_seen(positions[r]));
      all_to = min(all_to, positions[r]);
    }
    all_from = __reduce_max_sync(~0u, all_from);
    all_to = __reduce_min_sync(~0u, all_to);
  }

  __device__ void weigh_chunk(int chunk, const PositionTerms* terms, float (&scores)[8][4],
                              RowWeights& weights) const {
    if (sees_all(chunk))
      weigh<P, true>(args.rows, chunk, args.scale, terms, positions, scores, weights);
    else
      weigh<P, false>(args.rows, chunk, args.scale, terms, positions, scores, weights);
  }
  __device__ Seen seen_by_warp() const {
    Seen seen_by_rows;
    seen_by_rows.add(args.rows, positions[0]);
    seen_by_rows.add(args.rows, positions[1]);
    return seen_by_rows.over_warp();
  }
  __device__ bool sees_all(int chunk) const {
    return all_from <= chunk * kChunk && (chunk + 1) * kChunk - 1 <= all_to;
  }
  __device__ int first_chunk() const { return seen.last < 0 ? 0 : seen.first / kChunk; }
  __device__ int last_chunk() const { return seen.last < 0 ? -1 : seen.last / kChunk; }
  // The page of the lane's position of a chunk, and the position's slot there.
  __device__ int page_in(int chunk) const {
    const int at = chunk * kChunk + lane_key;
    return seen.first <= at && at <= seen.last ? args.pages.page_of(piece.sequence, at) : -1;
  }
  __device__ int slot_in(int page, int chunk) const {
    return page < 0 ? kClear : args.pages.slot(page, tile.kv_head, chunk * kChunk + lane_key);
  }
};

// The block's query heads, to shared memory.
template <typename Layout, typename P>
__device__ __forceinline__ void copy_queries(const PrefillBlock<P>& block, Operand<P>* to) {
  for (int i = static_cast<int>(threadIdx.x); i < block.used * Layout::kVectors; i += kTileThreads) {
    const int m = i / Layout::kVectors, vector = i % Layout::kVectors;
    const int64_t head =
        static_cast<int64_t>(block.piece.first + m / block.tile.heads) * block.args.rows.heads +
        block.tile.first_head + m % block.tile.heads;
    copy_or_clear(to + Layout::at(m, vector), block.args.q + (head * Layout::kVectors + vector) * 8, true);
  }
}

// The results of rows g = lane / 4 and g + 8 of a warp. sum: of their weights; total: of the values.
template <typename P, int kDim>
__device__ __forceinline__ void store_rows(const PrefillBlock<P>& block, const float (&sum)[2],
                                           const float (&total)[kDim / 8][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (block.block_row[r] >= block.used) continue;
    const int64_t row = block.piece.first + block.block_row[r] / block.tile.heads;
    const int column = (block.tile.first_head + block.block_row[r] % block.tile.heads) * kDim;
    const float factor = share(sum[r]);
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
      block.args.out.store(row, column + column_dim<P>(n), total[n][2 * r] * factor,
                           total[n][2 * r + 1] * factor);
  }
}

// By the tensor cores of sm_90a: 16-bit pages, heads of 64 or 128 dims (attention_prefill_sm90.cu).
template <typename P, int kDim>
void launch_prefill_sm90(Context& ctx, Grid grid, const PrefillArgs<P>& args);

}  // namespace shoal::ops::cuda
