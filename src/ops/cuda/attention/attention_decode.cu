// attend() for sequences of one row: norm, rotation, append and attention in one kernel. A block has some
// chunks of one row and one key/value head, whose query heads are rows of its mma tiles. The other rows of a
// tile may hold anything, since a row of a product depends only on the same row of its left operand.
#include "ops/cuda/attention/attention_decode.cuh"
#include "ops/cuda/device/launch.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kMostSplits = 8;       // a cluster of this size can run on every device that has clusters
constexpr int kKvWarp = kTileWarps - 1;  // norms the new key; the others share the query heads
// Of a block that shares its multiprocessor: two find room beside a block of the product before, so that all
// of them start early (eight sequences in a step, by clocks in the kernel: 13.6 -> 7.4 us on an H200).
constexpr int64_t kSharingBytes = 68 << 10;

template <typename T>
struct DecodeArgs {
  Rows rows;
  Pages<T> pages;
  HeadTurn turn;
  Out out;
  float scale;
  HeadTiling tiling;
  bool single_rows;  // for all sequences; otherwise the offsets tell
  int splits;        // a power of two
  bool clustered;    // blocks merge in their cluster; else the merge kernel does
  int kept;          // chunks of a block whose results stay in its shared memory
  float* partials;   // of the other chunks, by sequence, tile and chunk; null: there are none
  int most_parked;   // of a row: the room for them in partials

  // Of the sequence's row; -1: it has not just one.
  __device__ int row_of(int sequence) const {
    if (single_rows) return sequence;
    const int row = rows.offsets[sequence];
    return rows.offsets[sequence + 1] - row == 1 ? row : -1;
  }
  __device__ Partials parked() const {
    return Partials(partials, static_cast<int64_t>(rows.sequence_count) * gridDim.y * most_parked,
                    tiling.heads_per_tile, rows.dim);
  }
  // The position there of chunk 0 of the block's row; kept chunks come before the others.
  __device__ int64_t first_parked(int sequence) const {
    return (static_cast<int64_t>(sequence) * gridDim.y + blockIdx.y) * most_parked - kept * splits;
  }
};

// Reads results of a sequence's chunks in device memory for the merge: bypassing the first-level cache, which
// does not see the writes of other blocks.
template <typename T>
struct ParkedChunks {
  Partials all;
  int64_t first;  // chunk of theirs
  int heads, dim;

  __device__ ParkedChunks(const DecodeArgs<T>& args, int sequence)
      : all(args.parked()),
        first(args.first_parked(sequence)),
        heads(args.tiling.heads_per_tile),
        dim(args.rows.dim) {}
  __device__ float2 sum(int chunk, int head) const { return pair(all.sums + 2 * at(chunk, head)); }
  __device__ float2 value(int chunk, int head, int first_dim) const {
    return pair(all.values + at(chunk, head) * dim + first_dim);
  }

 private:
  __device__ int64_t at(int chunk, int head) const { return (first + chunk) * heads + head; }
  static __device__ float2 pair(const float* two) { return __ldcg(reinterpret_cast<const float2*>(two)); }
};

// A chunk's keys, its values, the next chunk's keys and so on pass through a ring of tiles. kDeep: four
// tiles, so that a chunk is fetched when the previous one begins; else three, each fetched as soon as its
// buffer is no longer read. Four are better for few blocks; for many, a Hopper multiprocessor holds four
// blocks with three tiles but only three with four (head_dim 128; 64 sequences of 300 positions 29.5 -> 22.9
// us on an H200).
constexpr int ring_tiles(bool deep) { return deep ? 4 : 3; }

template <typename T, int kDim, bool kDeep>
struct DecodeShared {
  T ring[ring_tiles(kDeep)][kChunk * kDim];
  T q[kTileRows * kDim];
  T weights[kTileRows * kChunk];
  float maxima[kTileWarps][kTileRows];
};

constexpr int64_t shared_bytes_alone(int64_t dim, bool deep) {
  return 2 * (ring_tiles(deep) * kChunk * dim + kTileRows * dim + kTileRows * kChunk) +
         static_cast<int64_t>(sizeof(float)) * kTileWarps * kTileRows;
}

constexpr int blocks_together(int dim, bool deep) { return (dim > 64 ? 3 : 5) + (deep ? 0 : 1); }

// The result of a padding row.
template <int kDim>
__device__ void clear_heads(const Out& out, int64_t row, const HeadTile& tile) {
  for (int dim = 2 * static_cast<int>(threadIdx.x); dim < tile.heads * kDim; dim += 2 * kTileThreads)
    out.store(row, tile.first_head * kDim + dim, 0, 0);
}

template <typename T, int kDim, bool kDeep>
__global__ __launch_bounds__(kTileThreads, blocks_together(kDim, kDeep)) void decode_kernel(
    const __grid_constant__ DecodeArgs<T> args) {
  constexpr int kPairs = (kDim / 2 + 31) / 32;
  constexpr int kValueTiles = kDim / 8 / kTileWarps < 2 ? 2 : kDim / 8 / kTileWarps;
  static_assert(sizeof(DecodeShared<T, kDim, kDeep>) == shared_bytes_alone(kDim, kDeep));
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<DecodeShared<T, kDim, kDeep>*>(memory);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int split = static_cast<int>(blockIdx.x), sequence = static_cast<int>(blockIdx.z);
  const HeadTile tile = args.tiling.tile(args.rows, static_cast<int>(blockIdx.y));

  // Fetches the data older than qkv (attention.h) before qkv is ready.
  const int row = args.row_of(sequence);
  const int lane_key = warp * kWarpKeys + lane % kWarpKeys;  // of every chunk
  int page = args.pages.page_near(sequence, split * kChunk + lane_key);
  const int position = row < 0 ? -1 : args.rows.positions[row];
  const ChunkRange range(args.rows, max(position, 0));
  const int active = min(args.splits, range.count);  // blocks that have chunks
  if (position < 0 || split >= active) {
    wait_for_inputs();
    if (row >= 0 && position < 0 && split == 0) clear_heads<kDim>(args.out, row, tile);
    return;
  }

  const auto page_in = [&](int chunk) {
    const int at = chunk * kChunk + lane_key;
    return range.sees(at) ? args.pages.page_of(sequence, at) : 0;
  };
  const auto slot_in = [&](int chunk, int page_id) {
    const int at = chunk * kChunk + lane_key;
    if (at == position) return kLeave;
    return range.sees(at) ? args.pages.slot(page_id, tile.kv_head, at) : kClear;
  };
  int chunk = range.first + split;
  const int last = range.last();
  if (range.first > 0) page = page_in(chunk);
  int slot = slot_in(chunk, page);  // of the chunk that is copied
  const auto copy = [&](bool wanted, T* to, const T* side) {
    if (wanted) copy_keys<T, kDim>(to, side, slot);
    end_copy_group();
  };
  // Of chunk number `round` of this block, its keys first.
  const auto keys_of = [&](int round) { return shared.ring[2 * round % ring_tiles(kDeep)]; };
  const auto values_of = [&](int round) { return shared.ring[(2 * round + 1) % ring_tiles(kDeep)]; };
  const auto copy_keys_behind = [&](int round) {
    const bool more = chunk + args.splits <= last;
    if (more) slot = slot_in(chunk + args.splits, page), page = page_in(chunk + 2 * args.splits);
    copy(more, keys_of(round + 1), args.pages.k);
  };
  const auto copy_values_behind = [&](int round) {
    copy(chunk + args.splits <= last, values_of(round + 1), args.pages.v);
  };
  copy(true, keys_of(0), args.pages.k);
  copy(true, values_of(0), args.pages.v);
  page = page_in(chunk + args.splits);
  copy_keys_behind(0);
  if constexpr (kDeep) copy_values_behind(0);

  const float* const norm_weight = warp == kKvWarp ? args.turn.k_weight : args.turn.q_weight;
  HeadPairs<kPairs> weight, head, turns, value;
  if (norm_weight) weight.load(norm_weight, kDim);
  turns.load_turns(args.turn, position, kDim);
  wait_for_inputs();

  if (warp == kKvWarp) {
    head.load(args.rows.k(row, tile.kv_head), kDim);
    value.load(args.rows.v(row, tile.kv_head), kDim);
    if (norm_weight) head.norm(weight, kDim, args.turn.eps);
    head.rotate(turns);
    if (tile.first && (last - chunk) % args.splits == 0) {
      const int64_t own = args.pages.slot(args.pages.page_of(sequence, position), tile.kv_head, position);
      head.store(args.pages.k + own * kDim, kDim);
      value.store(args.pages.v + own * kDim, kDim);
    }
  } else {
    for (int h = warp; h < tile.heads; h += kKvWarp) {
      head.load(args.rows.q(row, tile.first_head + h), kDim);
      if (norm_weight) head.norm(weight, kDim, args.turn.eps);
      head.rotate(turns);
      store_row<kDim>(shared.q, h, head);
    }
  }
  __syncthreads();
  uint32_t q[kDim / 16][4];
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) load_left<kDim>(q[step], shared.q, 0, step);

  const Partials kept(reinterpret_cast<float*>(memory + sizeof(DecodeShared<T, kDim, kDeep>)), args.kept,
                      args.tiling.heads_per_tile, kDim);
  const int first_dim = warp * kValueTiles * 8;
  RunningSums<kValueTiles> total;
  for (int round = 0; chunk <= last; ++round, chunk += args.splits) {
    T* const keys = keys_of(round);
    T* const values = values_of(round);
    if (round == 0)
      wait_for_copy_groups<kDeep ? 3 : 2>();  // the keys have arrived; all other copies began later
    else
      wait_for_copy_groups<1>();
    if (chunk == last && warp == kKvWarp) {
      store_row<kDim>(keys, position % kChunk, head);
      store_row<kDim>(values, position % kChunk, value);
    }
    __syncthreads();  // all keys are visible, and the previous chunk is no longer read
    if (round > 0) {
      copy_keys_behind(round);
      if constexpr (kDeep) copy_values_behind(round);
    }

    WarpScores scores;
    score_keys<kDim>(scores, q, keys, range, chunk, args.scale);
    if (lane % 4 == 0) {
      shared.maxima[warp][lane / 4] = scores.top[0];
      shared.maxima[warp][lane / 4 + 8] = scores.top[1];
    }
    __syncthreads();  // all maxima are visible, and the keys are no longer read
    if constexpr (!kDeep) copy_values_behind(round);
    weigh_keys(scores, shared.maxima, shared.weights);
    wait_for_copy_groups<2>();  // the values have arrived; the next chunk's copies began later
    __syncthreads();
    WarpSums<kValueTiles> sums;
    if (first_dim < kDim) sum_values<kDim>(sums, shared.weights, values, first_dim);
    if (first_dim >= kDim) continue;
    if (active == 1)
      total.merge(scores.top, sums);
    else if (round < args.kept)
      park(kept, round, tile, args.tiling.heads_per_tile, kDim, first_dim, scores.top, sums);
    else
      park(args.parked(), args.first_parked(sequence) + chunk - range.first, tile, args.tiling.heads_per_tile,
           kDim, first_dim, scores.top, sums);
  }

  if (active == 1) {
    if (first_dim < kDim) total.store(args.out, row, tile, kDim, first_dim);
  } else if (args.clustered) {
    const int shift = __ffs(args.splits) - 1;
    const ParkedChunks parked(args, sequence);
    const auto at = [&](int c, int h) { return (c >> shift) * args.tiling.heads_per_tile + h; };
    const auto block = [&](int c) { return c & (args.splits - 1); };
    const auto is_kept = [&](int c) { return c >> shift < args.kept; };
    cluster_barrier();
    merge_chunks<kDim>(
        args.out, row, tile, range.count, split * kTileThreads + static_cast<int>(threadIdx.x),
        active * kTileThreads,
        [&](int c, int h) {
          return is_kept(c) ? load_remote(kept.sums + 2 * at(c, h), block(c)) : parked.sum(c, h);
        },
        [&](int c, int h, int dim) {
          return is_kept(c) ? load_remote(kept.values + at(c, h) * kDim + dim, block(c))
                            : parked.value(c, h, dim);
        });
    end_cluster();
  }
}

// The merge without clusters. Rows of one chunk are already done.
template <typename T, int kDim>
__global__ __launch_bounds__(kTileThreads) void merge_kernel(const __grid_constant__ DecodeArgs<T> args) {
  wait_for_inputs();
  const int sequence = static_cast<int>(blockIdx.x), row = args.row_of(sequence);
  if (row < 0) return;
  const int position = args.rows.positions[row];
  if (position < 0) return;
  const ChunkRange range(args.rows, position);
  if (range.count == 1) return;
  const ParkedChunks parked(args, sequence);
  merge_chunks<kDim>(
      args.out, row, args.tiling.tile(args.rows, static_cast<int>(blockIdx.y)), range.count,
      static_cast<int>(threadIdx.x), kTileThreads, [&](int c, int h) { return parked.sum(c, h); },
      [&](int c, int h, int dim) { return parked.value(c, h, dim); });
}

// Blocks of a sequence and split.
int64_t tiles_of(const HeadLayout& layout) { return layout.kv_heads * HeadTiling(layout).tiles; }

// Chunks that any row can see.
int64_t most_chunks(const AttentionCall& call) {
  const int64_t all = blocks_for(call.plan->pages_per_sequence * call.plan->page_size, kChunk);
  if (call.window == 0) return std::max<int64_t>(1, all);
  return std::clamp<int64_t>((call.window + kChunk - 2) / kChunk + 1, 1, std::max<int64_t>(1, all));
}

int64_t blocks_of(const AttentionCall& call, int64_t splits) {
  return call.plan->rows.sequences() * tiles_of(call.layout) * splits;
}

// Where every block may have a multiprocessor to itself, or three tiles make no room for more.
bool wants_deep(const StreamState& stream, const AttentionCall& call, int64_t splits) {
  const auto together = [&](bool deep) {  // a block needs 1 KiB beyond its request
    return (stream.most_shared_bytes() + 1024) / (shared_bytes_alone(call.layout.head_dim, deep) + 1024);
  };
  return blocks_of(call, splits) <= stream.multiprocessors() || together(true) == together(false);
}

// Of the results of so many chunks of a block.
int64_t kept_bytes(const HeadLayout& layout, int64_t chunks) {
  return static_cast<int64_t>(sizeof(float)) *
         Partials::floats(chunks, HeadTiling(layout).heads_per_tile, layout.head_dim);
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
  const int64_t room = (shares ? kSharingBytes : most) - shared_bytes_alone(call.layout.head_dim, split.deep);
  split.kept = std::clamp<int64_t>(room / kept_bytes(call.layout, 1), 0, blocks_for(chunks, split.splits));
  split.clustered = true;
  return split;
}

void decode_attention(Context& ctx, const AttentionCall& call, const DecodeSplit& split) {
  CHECK(split.splits >= 1 && (split.splits & (split.splits - 1)) == 0, split.splits, " splits");
  const Workspace::Scope scope(*ctx.workspace);
  const HeadTiling tiling(call.layout);
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
    using T = decltype(type);
    constexpr int kDim = decltype(dim)::value;
    const DecodeArgs<T> args{rows,
                             pages_of<T>(call),
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
              static_cast<size_t>(shared_bytes_alone(kDim, split.deep) + kept_bytes(call.layout, kept))};
    if (split.clustered) grid.cluster = static_cast<unsigned>(split.splits);
    launch(ctx, "decode_attention", grid,
           split.deep ? decode_kernel<T, kDim, true> : decode_kernel<T, kDim, false>, args);
    if (merges_later)
      launch(ctx, "merge_attention",
             Grid{dim3(static_cast<unsigned>(sequences), static_cast<unsigned>(tiles)), dim3(kTileThreads)},
             merge_kernel<T, kDim>, args);
  });
}

}  // namespace shoal::ops::cuda
