// paged_attention() for any rows: blocks of up to 64 rows (positions times query heads of one key/value
// head), sixteen per warp, which share the chunks of keys in shared memory.
#include "ops/cuda/attention/attention_int8.cuh"
#include "ops/cuda/device/launch.cuh"

namespace shoal::ops::cuda {
namespace {

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
};

// Terms of the positions of two chunks.
template <bool kScaled>
struct StageTerms {};
template <>
struct alignas(16) StageTerms<true> {
  PositionTerms terms[2][kChunk];
};

template <typename P, int kDim>
struct PrefillShared : StageTerms<PageFormat<P>::kScaled> {
  alignas(kTileAlignment) Operand<P> q[kBlockRows * kDim];
  P k[2][kChunk * kDim], v[2][kChunk * kDim];
};

// The terms of a slot, as those of position `key` of the chunk in a stage.
template <typename P, int kDim>
__device__ __forceinline__ void copy_terms(const PrefillArgs<P>& args, int slot, int key, int stage,
                                           PrefillShared<P, kDim>& shared) {
  if constexpr (PageFormat<P>::kScaled) {
    if (threadIdx.x % 32 >= kWarpKeys) return;
    const __half none{};
    shared.terms[stage][key] = terms_of(slot < 0 ? none : args.pages.k_scales[slot],
                                        slot < 0 ? none : args.pages.v_scales[slot], args.scale);
  }
}

template <bool kScaled>
__device__ __forceinline__ const PositionTerms* terms_in(const StageTerms<kScaled>& shared, int stage) {
  if constexpr (kScaled) return shared.terms[stage];
  return nullptr;
}

// Sums of values by tiles of eight columns, as load_page_values gave them, to tiles whose columns 2 (lane %
// 4) and the next are the dims lane_dim and the next.
template <typename P, int kTiles>
__device__ void arrange(float (&sums)[kTiles][4]) {
  if constexpr (PageFormat<P>::kScaled) {
#pragma unroll
    for (int n = 0; n < kTiles; n += 2)
#pragma unroll
      for (int r = 0; r < 4; r += 2) {
        const float even = sums[n][r + 1];
        sums[n][r + 1] = sums[n + 1][r];
        sums[n + 1][r] = even;
      }
  }
}
// The first of this lane's two dims of tile n.
template <typename P>
__device__ int column_dim(int n) {
  const int quarter = static_cast<int>(threadIdx.x % 4);
  return PageFormat<P>::kScaled ? n / 2 * 16 + quarter * 4 + n % 2 * 2 : n * 8 + quarter * 2;
}

// Of left operands of sixteen rows: what is added to products of bytes with rows g and g + 8.
template <int kSteps>
__device__ ByteOffset offset_of(const uint32_t (&left)[kSteps][4]) {
  float sums[4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
    multiply<__half>(sums, left[step], packed_ones<__half>(), packed_ones<__half>());
  return ByteOffset({sums[0], sums[2]});
}
template <int kTiles>
__device__ void add_offset(float (&products)[kTiles][4], const ByteOffset& offset) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) products[n][i] = __fadd_rn(products[n][i], offset.of_row[i / 2]);
}

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

// terms: of the chunk, where pages have scales.
template <typename P>
__device__ void weigh(const Rows& rows, int chunk, float scale, [[maybe_unused]] const PositionTerms* terms,
                      const int (&positions)[2], float (&scores)[8][4], RowWeights& weights) {
  constexpr bool kScaled = PageFormat<P>::kScaled;
  const int column = chunk * kChunk + static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int last = positions[r], first = rows.first_seen(last);
    const auto at = [&](int n, int j) { return column + 8 * n + j; };
    const auto seen = [&](int n, int j) { return first <= at(n, j) && at(n, j) <= last; };
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

// Copies the piece's query heads to shared memory: row m of the block is query head m % tile.heads of the
// piece's row m / tile.heads.
template <int kDim, typename P>
__device__ __forceinline__ void copy_queries(const PrefillArgs<P>& args, const Piece& piece,
                                             const HeadTile& tile, int used, Operand<P>* to) {
  for (int i = static_cast<int>(threadIdx.x); i < used * (kDim / 8); i += kTileThreads) {
    const int m = i / (kDim / 8), vector = i % (kDim / 8);
    const int64_t head = static_cast<int64_t>(piece.first + m / tile.heads) * args.rows.heads +
                         tile.first_head + m % tile.heads;
    copy_or_clear(to + Swizzle<kDim>::at(m, vector), args.q + head * kDim + vector * 8, true);
  }
}

// The products of a warp's rows with the keys of a chunk.
template <int kDim, typename P>
__device__ __forceinline__ void score_chunk(float (&scores)[8][4], const Operand<P>* queries, const P* keys,
                                            int first_row) {
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    uint32_t q[4];
    load_queries<kDim, P>(q, queries, first_row, step);
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      uint32_t pair[4];
      load_page_keys<kDim>(pair, keys, n * 8, step);
      multiply<Operand<P>>(scores[n], q, pair[0], pair[1]);
      multiply<Operand<P>>(scores[n + 1], q, pair[2], pair[3]);
    }
  }
}

// The results of rows g = lane / 4 and g + 8 of a warp, which are rows block_row of the block.
template <typename P, int kDim>
__device__ __forceinline__ void store_rows(const Out& out, const float (&sum)[2],
                                           const float (&total)[kDim / 8][4], const Piece& piece,
                                           const HeadTile& tile, const int (&block_row)[2], int used) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (block_row[r] >= used) continue;
    const int64_t row = piece.first + block_row[r] / tile.heads;
    const int column = (tile.first_head + block_row[r] % tile.heads) * kDim;
    const float factor = share(sum[r]);
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
      out.store(row, column + column_dim<P>(n), total[n][2 * r] * factor, total[n][2 * r + 1] * factor);
  }
}

template <typename P, int kDim>
__global__ __launch_bounds__(kTileThreads) void prefill_kernel(const __grid_constant__ PrefillArgs<P> args) {
  using T = Operand<P>;
  constexpr bool kScaled = PageFormat<P>::kScaled;
  constexpr int kTogether = 4;
  extern __shared__ __align__(kTileAlignment) unsigned char memory[];
  auto& shared = *reinterpret_cast<PrefillShared<P, kDim>*>(memory);
  const Rows& rows = args.rows;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const HeadTile tile = args.tiling.tile(rows, static_cast<int>(blockIdx.y));
  const int heads = tile.heads;
  wait_for_inputs();
  // Late rows, which see the most, come first.
  const Piece piece(args, static_cast<int>(gridDim.x - 1 - blockIdx.x));
  if (piece.count <= 0) return;

  // Row m of the block is query head m % heads of the piece's row m / heads.
  const int used = piece.count * heads;
  Seen seen_by_lane;
  for (int i = lane; i < piece.count; i += 32) seen_by_lane.add(rows, rows.positions[piece.first + i]);
  const Seen seen = seen_by_lane.over_warp();
  int block_row[2], positions[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    block_row[r] = warp * kTileRows + lane / 4 + 8 * r;
    positions[r] = block_row[r] < used ? rows.positions[piece.first + block_row[r] / heads] : -1;
  }
  Seen seen_by_rows;
  seen_by_rows.add(rows, positions[0]);
  seen_by_rows.add(rows, positions[1]);
  const Seen seen_by_warp = seen_by_rows.over_warp();

  const int lane_key = warp * kWarpKeys + lane % kWarpKeys;  // of every chunk
  const auto page_in = [&](int chunk) {
    const int at = chunk * kChunk + lane_key;
    return seen.first <= at && at <= seen.last ? args.pages.page_of(piece.sequence, at) : -1;
  };
  const auto copy_chunk = [&](int chunk, int page, int stage) {
    const int slot = page < 0 ? kClear : args.pages.slot(page, tile.kv_head, chunk * kChunk + lane_key);
    const PageVectors<P, kDim> vectors(slot);
    vectors.copy(shared.k[stage], args.pages.k);
    vectors.copy(shared.v[stage], args.pages.v);
    end_copy_group();
    copy_terms(args, slot, lane_key, stage, shared);
  };
  const int last = seen.last < 0 ? -1 : seen.last / kChunk;
  int chunk = seen.last < 0 ? 0 : seen.first / kChunk, stage = 0;
  int page = -1;
  if (chunk <= last) {
    copy_queries<kDim>(args, piece, tile, used, shared.q);
    copy_chunk(chunk, page_in(chunk), stage);
    page = page_in(chunk + 1);
  }

  float maximum[2] = {kNothing, kNothing}, sum[2] = {}, total[kDim / 8][4] = {};
  [[maybe_unused]] ByteOffset query_offset{};
  if constexpr (kScaled) {
    wait_for_copy_groups<0>();
    __syncthreads();  // the queries have arrived
    uint32_t q[kDim / 16][4];
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step)
      load_queries<kDim, P>(q[step], shared.q, warp * kTileRows, step);
    query_offset = offset_of(q);
  }
  for (; chunk <= last; ++chunk, stage = 1 - stage) {
    wait_for_copy_groups<0>();
    __syncthreads();  // all copies are visible, and the other stage is no longer read
    if (chunk < last) {
      copy_chunk(chunk + 1, page, 1 - stage);
      page = page_in(chunk + 2);
    }
    if (!seen_by_warp.touches(chunk)) continue;

    float scores[8][4] = {};
    score_chunk<kDim>(scores, shared.q, shared.k[stage], warp * kTileRows);
    if constexpr (kScaled) add_offset(scores, query_offset);
    RowWeights weights;
    weigh<P>(rows, chunk, args.scale, terms_in(shared, stage), positions, scores, weights);
    [[maybe_unused]] ByteOffset weight_offset;
    if constexpr (kScaled) weight_offset = offset_of(weights.left);
    MergeWeights merge[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      merge[r] = merge_maximum(maximum[r], weights.top[r]);
      sum[r] = merged(sum[r], weights.sums[r], merge[r]);
    }
#pragma unroll
    for (int first = 0; first < kDim / 8; first += kTogether) {
      float values[kTogether][4] = {};
#pragma unroll
      for (int step = 0; step < kChunk / 16; ++step)
#pragma unroll
        for (int n = 0; n < kTogether; n += 2) {
          uint32_t b[4];
          load_page_values<kDim>(b, shared.v[stage], (first + n) * 8, step);
          multiply<T>(values[n], weights.left[step], b[0], b[1]);
          multiply<T>(values[n + 1], weights.left[step], b[2], b[3]);
        }
      if constexpr (kScaled) add_offset(values, weight_offset);
      arrange<P>(values);
#pragma unroll
      for (int n = 0; n < kTogether; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          total[first + n][j] = merged(total[first + n][j], values[n][j], merge[j / 2]);
    }
  }
  store_rows<P, kDim>(args.out, sum, total, piece, tile, block_row, used);
}

}  // namespace

void prefill_attention(Context& ctx, const AttentionCall& call, TensorView rounded_q, bool skip_single_rows) {
  const HeadTiling tiling(call.layout, kTileRows);
  const int64_t rows_per_block = kBlockRows / tiling.heads_per_tile;
  const int64_t row_blocks = blocks_for(call.qkv.dim(0), rows_per_block);
  with_tensor_form(call, [&](auto type, auto dim) {
    using P = decltype(type);
    constexpr int kDim = decltype(dim)::value;
    const Rows rows = rows_of(call);
    const PrefillArgs<P> args{rows,
                              pages_of<P>(call),
                              out_of(call),
                              static_cast<const Operand<P>*>(rounded_q.data()),
                              score_scale(kDim),
                              tiling,
                              static_cast<int>(rows_per_block),
                              static_cast<int>(row_blocks),
                              skip_single_rows};
    const Grid grid{dim3(static_cast<unsigned>(row_blocks + rows.sequence_count),
                         static_cast<unsigned>(call.layout.kv_heads * tiling.tiles)),
                    dim3(kTileThreads), sizeof(PrefillShared<P, kDim>)};
    launch(ctx, "prefill_attention", grid, prefill_kernel<P, kDim>, args);
  });
}

}  // namespace shoal::ops::cuda
