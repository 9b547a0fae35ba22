// attend() for sequences of one row: norm, rotation, append and attention in one kernel. A block has some
// chunks of one row and one key/value head, whose query heads are the columns of its products. The other
// columns may hold anything, since a column depends only on the same column of the right operand.
#include "ops/cuda/attention/attention_decode.cuh"
#include "ops/cuda/attention/attention_decode_block.cuh"
#include "ops/cuda/device/launch.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kMostSplits = 8;  // a cluster of this size can run on every device that has clusters
// Of a block that shares its multiprocessor: two find room beside a block of the product before, so that all
// of them start early (eight sequences in a step, by clocks in the kernel: 13.6 -> 7.4 us on an H200).
constexpr int64_t kSharingBytes = 68 << 10;

// The result of a padding row.
template <int kDim>
__device__ void clear_heads(const Out& out, int64_t row, const HeadTile& tile) {
  for (int dim = 2 * static_cast<int>(threadIdx.x); dim < tile.heads * kDim; dim += 2 * kTileThreads)
    out.store(row, tile.first_head * kDim + dim, 0, 0);
}

// Norms and turns the row's heads, the query heads into shared memory. kKeyWarp and kValueWarp keep the key
// and the value, and append them to their page if the row's last chunk is this block's. What is older than
// qkv is read before qkv is ready.
template <typename P, int kDim, bool kDeep>
__device__ __forceinline__ void turn_heads(const DecodeArgs<P>& args, const DecodeRow& at,
                                           const ChunkRing<P, kDim, kDeep>& ring,
                                           DecodeShared<P, kDim, kDeep>& shared, WarpHead<kDim>& own) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  const float* const norm_weight = warp == kKeyWarp ? args.turn.k_weight : args.turn.q_weight;
  WarpHead<kDim> weight, turns;
  if (norm_weight && warp != kValueWarp) weight.load(norm_weight, kDim);
  turns.load_turns(args.turn, at.position, kDim);
  wait_for_inputs();

  const auto turn = [&] {
    if (norm_weight) own.norm(weight, kDim, args.turn.eps);
    own.rotate(turns);
  };
  if (warp < kValueWarp) {
    for (int h = warp; h < at.tile.heads; h += kValueWarp) {
      own.load(args.rows.q(at.row, at.tile.first_head + h), kDim);
      turn();
      store_row<kDim>(shared.q, h, own);
    }
    return;
  }
  const bool is_key = warp == kKeyWarp;
  own.load(is_key ? args.rows.k(at.row, at.tile.kv_head) : args.rows.v(at.row, at.tile.kv_head), kDim);
  if (is_key) turn();
  [[maybe_unused]] __half scale;
  if constexpr (PageFormat<P>::kScaled) {
    scale = quantise(own);
    if (threadIdx.x % 32 == 0) (is_key ? shared.own_key : shared.own_value) = scale;
  }
  if (!at.tile.first || (ring.last - ring.chunk) % args.splits != 0) return;
  const int64_t slot =
      args.pages.slot(args.pages.page_of(at.sequence, at.position), at.tile.kv_head, at.position);
  if constexpr (PageFormat<P>::kScaled) (is_key ? args.pages.k_scales : args.pages.v_scales)[slot] = scale;
  own.store((is_key ? args.pages.k : args.pages.v) + slot * kDim, kDim);
}

// The terms of this warp's positions, the row's own included, for this warp.
template <typename P, int kDim, bool kDeep>
__device__ __forceinline__ void share_terms(const ChunkRing<P, kDim, kDeep>& ring, int position,
                                            float score_scale, DecodeShared<P, kDim, kDeep>& shared) {
  if constexpr (PageFormat<P>::kScaled) {
    PositionScales scales = ring.scales;
    if (ring.chunk * kChunk + lane_key() == position)
      scales = {half_bits(shared.own_key), half_bits(shared.own_value)};
    if (threadIdx.x % 32 < kWarpKeys)
      shared.terms[lane_key()] = terms_of(half_of(scales.key), half_of(scales.value), score_scale);
    __syncwarp();
  }
}

template <bool kScaled>
__device__ __forceinline__ PositionTerms* terms_in(ScaleTile<kScaled>& tile) {
  if constexpr (kScaled) return tile.terms;
  return nullptr;
}
template <bool kScaled>
__device__ __forceinline__ ByWarp* weight_sums_in(ScaleTile<kScaled>& tile) {
  if constexpr (kScaled) return &tile.weight_sums;
  return nullptr;
}

template <typename P, int kDim, bool kDeep, bool kMany>
__global__ __launch_bounds__(kTileThreads, blocks_together<P>(kDim, kDeep, kMany)) void decode_kernel(
    const __grid_constant__ DecodeArgs<P> args) {
  constexpr int kValueTiles = kDim / 16 / kTileWarps < 1 ? 1 : kDim / 16 / kTileWarps;
  static_assert(sizeof(DecodeShared<P, kDim, kDeep>) == shared_bytes_alone(kDim, kDeep, sizeof(P)));
  extern __shared__ __align__(kTileAlignment) unsigned char memory[];
  auto& shared = *reinterpret_cast<DecodeShared<P, kDim, kDeep>*>(memory);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int split = static_cast<int>(blockIdx.x), sequence = static_cast<int>(blockIdx.z);
  const HeadTile tile = args.tiling.tile(static_cast<int>(blockIdx.y));

  // Fetches the data older than qkv (attention.h) before qkv is ready.
  const int row = args.row_of(sequence);
  const int page = args.pages.page_near(sequence, split * kChunk + lane_key());
  const DecodeRow at{tile, sequence, row, row < 0 ? -1 : args.rows.positions[row]};
  const ChunkRange range(args.rows, max(at.position, 0));
  const int active = min(args.splits, range.count);  // blocks that have chunks
  if (at.position < 0 || split >= active) {
    wait_for_inputs();
    if (row >= 0 && at.position < 0 && split == 0) clear_heads<kDim>(args.out, row, tile);
    return;
  }
  ChunkRing<P, kDim, kDeep> ring(args, at, range, shared.ring, split, page);
  ring.begin();
  WarpHead<kDim> own;
  turn_heads(args, at, ring, shared, own);
  __syncthreads();
  uint32_t q[kDim / 16][2];
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) load_right_queries<kDim, P>(q[step], shared.q, step);
  [[maybe_unused]] ByteOffset offset;
  if constexpr (PageFormat<P>::kScaled) {
    float sums[2];
    sum_columns<Operand<P>>(sums, q);
    offset = ByteOffset(sums);
  }

  const Partials kept(reinterpret_cast<float*>(memory + sizeof(DecodeShared<P, kDim, kDeep>)), args.kept,
                      args.tiling.heads_per_tile, kDim);
  const int first_dim = warp * kValueTiles * 16;
  RunningSums<kValueTiles> total;
  for (int round = 0; ring.chunk <= ring.last; ++round, ring.chunk += args.splits) {
    P* const keys = ring.keys_of(round);
    P* const values = ring.values_of(round);
    ring.wait_for_keys(round);
    if (ring.chunk == ring.last && warp >= kValueWarp)  // the row's own are not read from their page
      store_row<kDim>(warp == kKeyWarp ? keys : values, at.position % kChunk, own);
    __syncthreads();  // all keys are visible, and the previous chunk is no longer read
    if (round > 0) {
      ring.advance(round);
      ring.copy_next(round);
    }
    share_terms(ring, at.position, args.scale, shared);
    WarpScores scores;
    score_keys<kDim>(scores, q, keys, range, ring.chunk, args.scale, terms_in(shared), offset);
    shared.maxima.set(warp, scores.top[0], scores.top[1]);
    __syncthreads();  // all maxima are visible, and the keys are no longer read
    if constexpr (!kDeep) ring.copy_values_behind(round);
    weigh_keys<P>(scores, shared.maxima, shared.weights, weight_sums_in(shared));
    wait_for_copy_groups<2>();  // the values have arrived; the next chunk's copies began later
    __syncthreads();
    WarpSums<kValueTiles> sums;
    if (first_dim < kDim) sum_values<kDim>(sums, shared.weights, values, first_dim, weight_sums_in(shared));
    if (first_dim >= kDim) continue;
    if (active == 1)
      total.merge(scores.top, sums);
    else if (round < args.kept)
      park<P>(kept, round, tile, args.tiling.heads_per_tile, kDim, first_dim, scores.top, sums);
    else
      park<P>(args.parked(), args.first_parked(sequence) + ring.chunk - range.first, tile,
              args.tiling.heads_per_tile, kDim, first_dim, scores.top, sums);
  }
  if (active == 1) {
    if (first_dim < kDim) total.template store<P>(args.out, row, tile, kDim, first_dim);
  } else if (args.clustered) {
    const int shift = __ffs(args.splits) - 1;
    const ParkedChunks parked(args, sequence);
    const auto place = [&](int c, int h) { return (c >> shift) * args.tiling.heads_per_tile + h; };
    const auto block = [&](int c) { return c & (args.splits - 1); };
    const auto is_kept = [&](int c) { return c >> shift < args.kept; };
    cluster_barrier();
    merge_chunks<kDim>(
        args.out, row, tile, range.count, split * kTileThreads + static_cast<int>(threadIdx.x),
        active * kTileThreads,
        [&](int c, int h) {
          return is_kept(c) ? load_remote(kept.sums + 2 * place(c, h), block(c)) : parked.sum(c, h);
        },
        [&](int c, int h, int dim) {
          return is_kept(c) ? load_remote(kept.values + place(c, h) * kDim + dim, block(c))
                            : parked.value(c, h, dim);
        });
    end_cluster();
  }
}

template <typename P, int kDim, bool kDeep>
auto chosen_kernel([[maybe_unused]] bool many) {
  if constexpr (can_be_many<P>())
    if (many) return decode_kernel<P, kDim, kDeep, true>;
  return decode_kernel<P, kDim, kDeep, false>;
}

// The merge without clusters. Rows of one chunk are already done.
template <typename P, int kDim>
__global__ __launch_bounds__(kTileThreads) void merge_kernel(const __grid_constant__ DecodeArgs<P> args) {
  wait_for_inputs();
  const int sequence = static_cast<int>(blockIdx.x), row = args.row_of(sequence);
  if (row < 0) return;
  const int position = args.rows.positions[row];
  if (position < 0) return;
  const ChunkRange range(args.rows, position);
  if (range.count == 1) return;
  const ParkedChunks parked(args, sequence);
  merge_chunks<kDim>(
      args.out, row, args.tiling.tile(static_cast<int>(blockIdx.y)), range.count,
      static_cast<int>(threadIdx.x), kTileThreads, [&](int c, int h) { return parked.sum(c, h); },
      [&](int c, int h, int dim) { return parked.value(c, h, dim); });
}

HeadTiling tiling_of(const HeadLayout& layout) { return {layout, kDecodeHeads}; }

// Blocks of a sequence and split.
int64_t tiles_of(const HeadLayout& layout) { return layout.kv_heads * tiling_of(layout).tiles; }

// Chunks that any row can see.
int64_t most_chunks(const AttentionCall& call) {
  const int64_t all = blocks_for(call.plan->pages_per_sequence * call.plan->page_size, kChunk);
  if (call.window == 0) return std::max<int64_t>(1, all);
  return std::clamp<int64_t>((call.window + kChunk - 2) / kChunk + 1, 1, std::max<int64_t>(1, all));
}

int64_t blocks_of(const AttentionCall& call, int64_t splits) {
  return call.plan->rows.sequences() * tiles_of(call.layout) * splits;
}

int64_t shared_bytes_alone(const AttentionCall& call, bool deep) {
  return cuda::shared_bytes_alone(call.layout.head_dim, deep, size_of(call.cache.k.dtype()));
}

// Where every block may have a multiprocessor to itself, or three tiles make no room for more; and for tiles
// of 8 bits, of which four take less than three of 16 (64 sequences of 1,000 positions 69 -> 55 us on an
// H100).
bool wants_deep(const StreamState& stream, const AttentionCall& call, int64_t splits) {
  if (call.cache.k.dtype() == DType::i8) return true;
  const auto together = [&](bool deep) {  // a block needs 1 KiB beyond its request
    return (stream.most_shared_bytes() + 1024) / (shared_bytes_alone(call, deep) + 1024);
  };
  return blocks_of(call, splits) <= stream.multiprocessors() || together(true) == together(false);
}

// Of the results of so many chunks of a block.
int64_t kept_bytes(const HeadLayout& layout, int64_t chunks) {
  return static_cast<int64_t>(sizeof(float)) *
         Partials::floats(chunks, tiling_of(layout).heads_per_tile, layout.head_dim);
}

}  // namespace

DecodeSplit choose_decode_split(Context& ctx, const AttentionCall& call) {
  const StreamState& stream = state_of(ctx);
  const int64_t chunks = most_chunks(call);
  DecodeSplit split;
  // As many blocks as run at once, two per multiprocessor.
  while (split.splits < kMostSplits && split.splits < chunks &&
         blocks_of(call, split.splits) <= stream.multiprocessors())
    split.splits *= 2;
  split.deep = wants_deep(stream, call, split.splits);
  if (split.splits == 1 || stream.architecture() < 90) return split;
  // A block may take what there is if it has the multiprocessor to itself, or could not share it anyway.
  const int64_t most = stream.most_shared_bytes();
  const bool shares = blocks_of(call, split.splits) > stream.multiprocessors() && most >= 2 * kSharingBytes;
  const int64_t room = (shares ? kSharingBytes : most) - shared_bytes_alone(call, split.deep);
  split.kept = std::clamp<int64_t>(room / kept_bytes(call.layout, 1), 0, blocks_for(chunks, split.splits));
  split.clustered = true;
  return split;
}

void decode_attention(Context& ctx, const AttentionCall& call, const DecodeSplit& split) {
  CHECK(split.splits >= 1 && (split.splits & (split.splits - 1)) == 0, split.splits, " splits");
  const Workspace::Scope scope(*ctx.workspace);
  const HeadTiling tiling = tiling_of(call.layout);
  const Rows rows = rows_of(call);
  const int64_t sequences = rows.sequence_count, tiles = tiles_of(call.layout), chunks = most_chunks(call);
  const int64_t kept = split.clustered ? std::min(split.kept, blocks_for(chunks, split.splits)) : 0;
  const int64_t parked = split.splits > 1 ? std::max<int64_t>(0, chunks - kept * split.splits) : 0;
  const bool merges_later = split.splits > 1 && !split.clustered;
  TensorView partials;
  if (parked > 0)
    partials = ctx.workspace->alloc(
        DType::f32, {Partials::floats(sequences * tiles * parked, tiling.heads_per_tile, rows.dim)});
  with_tensor_form(call, [&](auto type, auto dim) {
    using P = decltype(type);
    constexpr int kDim = decltype(dim)::value;
    const DecodeArgs<P> args{rows,
                             pages_of<P>(call),
                             turn_of(call),
                             out_of(call),
                             score_scale(kDim),
                             tiling,
                             call.plan->tables.single_rows,
                             static_cast<int>(split.splits),
                             split.clustered,
                             static_cast<int>(kept),
                             static_cast<float*>(partials.data()),
                             static_cast<int>(parked)};
    // Blocks that run at the same time read the heads of few sequences, which are adjacent in their pages
    // (256 sequences of 300 positions 77.7 -> 76.4 us on an H200, compared with one head of all sequences).
    Grid grid{dim3(static_cast<unsigned>(split.splits), static_cast<unsigned>(tiles),
                   static_cast<unsigned>(sequences)),
              dim3(kTileThreads),
              static_cast<size_t>(shared_bytes_alone(call, split.deep) + kept_bytes(call.layout, kept))};
    if (split.clustered) grid.cluster = static_cast<unsigned>(split.splits);
    const bool many = blocks_of(call, split.splits) >
                      state_of(ctx).multiprocessors() * blocks_together<P>(kDim, split.deep, false);
    launch(ctx, "decode_attention", grid,
           split.deep ? chosen_kernel<P, kDim, true>(many) : chosen_kernel<P, kDim, false>(many), args);
    if (merges_later)
      launch(ctx, "merge_attention",
             Grid{dim3(static_cast<unsigned>(sequences), static_cast<unsigned>(tiles)), dim3(kTileThreads)},
             merge_kernel<P, kDim>, args);
  });
}

}  // namespace shoal::ops::cuda
