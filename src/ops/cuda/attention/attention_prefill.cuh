// What the kernels of paged_attention() for any rows share: blocks of up to 64 rows (positions times query
// heads of one key/value head), sixteen per warp, which share the chunks of keys in shared memory.
#pragma once

#include "ops/cuda/attention/attention_int8.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/quad_store.cuh"
#include "ops/cuda/gemm/operands/tile_store.cuh"

namespace shoal::ops::cuda {

constexpr int kBlockRows = kTileWarps * kTileRows;

// row * row_reciprocal(heads) >> 16 is row / heads for rows of a block.
__host__ __device__ constexpr unsigned row_reciprocal(int heads) {
  return (1u << 16) / static_cast<unsigned>(heads) + 1;
}

template <typename P>
struct PrefillArgs {
  Rows rows;
  Pages<P> pages;
  Out out;
  const Operand<P>* q;  // [rows, heads, kDim]
  float scale;
  HeadTiling tiling;
  unsigned tile_reciprocal;  // of heads_per_tile (row_reciprocal)
  int rows_per_block;        // of the batch, at most kBlockRows
  int row_blocks;
  int pieces, tiles;  // every piece has every tile of heads
  bool skip_single_rows;
  bool halves;  // PieceOrder
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
    const int stop = cut ? first + per_block : (begin / per_block + 1) * per_block;
    count = min(stop, end) - first;
    if (!cut && begin % per_block == 0) count = 0;
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

// Which piece and which tile of heads is number `own`. Late pieces see the most and come first. halves: there
// are hardly more than two blocks a multiprocessor; then the second half begins with the earliest, so that
// each multiprocessor gets as many chunks.
struct PieceOrder {
  int piece, tile;

  template <typename P>
  __device__ PieceOrder(const PrefillArgs<P>& args, int own) {
    const int all = args.tiles * args.pieces, half = (all + 1) / 2;
    const int place = !args.halves || own < half ? own : all - 1 - (own - half);
    const int of_all = place / args.tiles;
    piece = args.pieces - 1 - of_all;
    tile = place - of_all * args.tiles;
  }
};

// The positions of kBlockRows rows of the batch, one after the other, spread over each warp.
struct HeldPositions {
  static constexpr int kCount = kBlockRows / 32;
  int own[kCount];

  __device__ HeldPositions(const Rows& rows, int first) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      own[i] = rows.positions[min(first + static_cast<int>(threadIdx.x % 32) + 32 * i, rows.count - 1)];
  }
  // Of the row-th; by all lanes.
  __device__ int of_row(int row) const {
    int position = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int there = __shfl_sync(~0u, own[i], row % 32);
      if (row / 32 == i) position = there;
    }
    return position;
  }
};

// A piece and a tile, on which a block works. Row m of it is query head m % heads of the piece's row m /
// heads.
template <typename P>
struct PrefillBlock {
  const PrefillArgs<P>& args;
  HeadTile tile;
  unsigned reciprocal;  // of its heads
  Piece piece;
  int used;          // rows
  Seen seen;         // by all of them
  int lane_key;      // of the positions of every chunk, that this lane copies
  int block_row[2];  // this lane's rows, and their positions
  int positions[2];
  int all_from = 0, all_to = INT32_MAX;  // what all rows of the warp see

  __device__ PrefillBlock(const PrefillArgs<P>& a, int own) : PrefillBlock(a, PieceOrder(a, own)) {}
  __device__ PrefillBlock(const PrefillArgs<P>& a, const PieceOrder& order)
      : PrefillBlock(a, order, order.piece < a.row_blocks ? order.piece * a.rows_per_block : -1) {}
  // first: the piece's first row, or -1 where only the piece knows it. Known before, the positions are loaded
  // together with the piece, not after it.
  __device__ PrefillBlock(const PrefillArgs<P>& a, const PieceOrder& order, int first)
      : PrefillBlock(a, order, first, HeldPositions(a.rows, max(first, 0))) {}
  __device__ PrefillBlock(const PrefillArgs<P>& a, const PieceOrder& order, int first, HeldPositions held)
      : args(a),
        tile(a.tiling.tile(order.tile)),
        reciprocal(tile.heads == a.tiling.heads_per_tile ? a.tile_reciprocal : row_reciprocal(tile.heads)),
        piece(a, order.piece),
        used(piece.count * tile.heads) {
    const Rows& rows = a.rows;
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    if (first < 0) held = HeldPositions(rows, piece.first);
    Seen seen_by_lane;
#pragma unroll
    for (int i = 0; i < HeldPositions::kCount; ++i)
      if (lane + 32 * i < piece.count) seen_by_lane.add(rows, held.own[i]);
    seen = seen_by_lane.over_warp();
    lane_key = warp * kWarpKeys + lane % kWarpKeys;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      block_row[r] = warp * kTileRows + lane / 4 + 8 * r;
      const int position = held.of_row(row_of(block_row[r]));
      positions[r] = block_row[r] < used ? position : -1;
      if (block_row[r] >= used) continue;
      all_from = max(all_from, rows.first_seen(positions[r]));
      all_to = min(all_to, positions[r]);
    }
    all_from = __reduce_max_sync(~0u, all_from);
    all_to = __reduce_min_sync(~0u, all_to);
  }

  // The piece's row that is row m's.
  __device__ int row_of(int m) const { return static_cast<int>(static_cast<unsigned>(m) * reciprocal >> 16); }
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

// A row's results as 16 bits, four neighbours by each lane: where pages have scales they are the lane's own,
// else two lanes exchange pairs. By all lanes; to: null stores nothing.
template <typename P, int kDim>
__device__ __forceinline__ void store_narrow(uint16_t* to, DType dtype, float factor, int r,
                                             const float (&total)[kDim / 8][4]) {
#pragma unroll
  for (int n = 0; n < kDim / 8; n += 2) {
    const auto pair = [&](int tile) {
      return rounded_pair(dtype, total[tile][2 * r] * factor, total[tile][2 * r + 1] * factor);
    };
    const uint2 four =
        PageFormat<P>::kScaled ? uint2{pair(n), pair(n + 1)} : quad_of_pairs(pair(n), pair(n + 1));
    const int column = PageFormat<P>::kScaled ? static_cast<int>(threadIdx.x % 4) * 4 : quad_column();
    if (to) *reinterpret_cast<uint2*>(to + n * 8 + column) = four;
  }
}

// The results of rows g = lane / 4 and g + 8 of a warp. sum: of their weights; total: of the values.
template <typename P, int kDim>
__device__ __forceinline__ void store_rows(const PrefillBlock<P>& block, const float (&sum)[2],
                                           const float (&total)[kDim / 8][4]) {
  const Out& out = block.args.out;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row_of_piece = block.row_of(block.block_row[r]);
    const int64_t row = block.piece.first + row_of_piece;
    const int head = block.tile.first_head + block.block_row[r] - row_of_piece * block.tile.heads;
    const bool stored = block.block_row[r] < block.used;
    const int64_t at = row * out.stride + head * kDim;
    const float factor = share(sum[r]);
    if (out.dtype != DType::f32) {
      store_narrow<P, kDim>(stored ? static_cast<uint16_t*>(out.data) + at : nullptr, out.dtype, factor, r,
                            total);
      continue;
    }
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
      if (stored)
        *reinterpret_cast<float2*>(static_cast<float*>(out.data) + at + column_dim<P>(n)) = {
            total[n][2 * r] * factor, total[n][2 * r + 1] * factor};
  }
}

// Whether the tensor cores of sm_90a can do it: 16-bit pages of whole sixteens of positions, heads of 128
// dims, blocks of whole groups of heads (attention_prefill_sm90.cu). Those of 64, of which the codec has few
// rows a stream, take longer there: 64 streams x 4 rows 31 us, by mma 21 (H200).
bool suits_prefill_sm90(Context& ctx, const AttentionCall& call, const HeadTiling& tiling);
template <typename P>
void launch_prefill_sm90(Context& ctx, const AttentionCall& call, TensorView rounded_q,
                         const PrefillArgs<P>& args);

}  // namespace shoal::ops::cuda
