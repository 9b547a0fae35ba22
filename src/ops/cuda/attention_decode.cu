// attend() for one row per sequence: norm, rotation, append and attention in one kernel. A block has some
// chunks of one row and one key/value head, whose query heads are rows of its mma tiles; what the other rows
// of a tile hold is never looked at, since a row of a product depends on the same row of its left operand
// alone.
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/launch.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kMostSplits = 8;  // a cluster of this size can run on every device that has clusters

template <typename T>
struct DecodeArgs {
  Rows rows;
  Pages<T> pages;
  HeadTurn turn;
  Out out;
  float scale;
  int splits;          // a power of two
  int heads_per_tile;  // query heads of a block, at most kTileRows
  int tiles;           // of the query heads of a key/value head
  int rounds;          // most chunks of a block
  float* partials;     // of the merge kernel, by row, tile and chunk; null: blocks merge in their cluster
  int most_chunks;     // of a row: the room for them in partials
};

template <typename T, int kDim>
struct DecodeShared {
  T k[2][kChunk * kDim], v[2][kChunk * kDim];
  T q[kTileRows * kDim];
  T weights[kTileRows * kChunk];
  float maxima[kTileWarps][kTileRows];
};

constexpr int64_t shared_bytes_alone(int64_t dim) {
  return 2 * (4 * kChunk * dim + kTileRows * dim + kTileRows * kChunk) +
         static_cast<int64_t>(sizeof(float)) * kTileWarps * kTileRows;
}

// Results of chunks that await their merge: [chunks, heads_per_tile, kDim] and, after them all, {maximum,
// sum} per chunk and head.
struct Partials {
  float* values;
  float* sums;

  __host__ __device__ static int64_t floats(int64_t chunks, int64_t heads, int64_t dim) {
    return chunks * heads * (dim + 2);
  }
  __device__ Partials(float* memory, int64_t chunks, int heads, int dim)
      : values(memory), sums(memory + chunks * heads * dim) {}
};

// The chunks that a row sees.
struct ChunkRange {
  int position, first_position;  // inclusive
  int first, count;

  __device__ ChunkRange(const Rows& rows, int at)
      : position(at),
        first_position(rows.first_seen(at)),
        first(first_position / kChunk),
        count(at / kChunk - first + 1) {}
  __device__ int last() const { return first + count - 1; }
  __device__ bool sees(int at) const { return first_position <= at && at <= position; }
};

// Which query heads a block has.
struct HeadTile {
  int kv_head, first_head, heads;
  bool appends;  // the first tile of its key/value head

  template <typename T>
  __device__ HeadTile(const DecodeArgs<T>& args, int index) {
    const int tile = index % args.tiles, group = args.rows.group();
    kv_head = index / args.tiles;
    first_head = kv_head * group + tile * args.heads_per_tile;
    heads = min(args.heads_per_tile, group - tile * args.heads_per_tile);
    appends = tile == 0;
  }
};

// A head as row `row` of a tile.
template <int kDim, typename T, int kPairs>
__device__ void store_row(T* tile, int row, const HeadPairs<kPairs>& head) {
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int pair = HeadPairs<kPairs>::pair(i);
    if (2 * pair < kDim)
      *reinterpret_cast<Pair<T>*>(tile + Swizzle<kDim>::at(row, pair / 4) + pair % 4 * 2) = {
          narrowed<T>(head.x[i].x), narrowed<T>(head.x[i].y)};
  }
}

// The running softmax of the rows g = lane / 4 and g + 8 of a tile, over 8 kTiles dims.
template <int kTiles>
struct RowSums {
  float maximum[2] = {kNothing, kNothing}, sum[2] = {};
  float values[kTiles][4] = {};

  __device__ void merge(const float (&top)[2], const float (&chunk_sum)[4], const float (&chunk)[kTiles][4]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const MergeWeights weights = merge_maximum(maximum[r], top[r]);
      sum[r] = merged(sum[r], chunk_sum[2 * r], weights);
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int j = 2 * r; j < 2 * r + 2; ++j) values[n][j] = merged(values[n][j], chunk[n][j], weights);
    }
  }
};

// Merges the chunks of a row for the pairs of dims that fall to this thread.
// sum(chunk, head) -> float2 {maximum, sum}; value(chunk, head, dim) -> float2.
template <int kDim, typename Sum, typename Value>
__device__ void merge_chunks(const Out& out, int64_t row, const HeadTile& tile, int chunks, int begin,
                             int step, Sum sum_of, Value value_of) {
  for (int pair = begin; pair < tile.heads * kDim / 2; pair += step) {
    const int head = pair / (kDim / 2), dim = pair % (kDim / 2) * 2;
    float maximum = kNothing, sum = 0;
    float2 value = {0, 0};
#pragma unroll 4
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const float2 part = sum_of(chunk, head), part_value = value_of(chunk, head, dim);
      const MergeWeights weights = merge_maximum(maximum, part.x);
      sum = merged(sum, part.y, weights);
      value = {merged(value.x, part_value.x, weights), merged(value.y, part_value.y, weights)};
    }
    const float factor = share(sum);
    out.store(row, (tile.first_head + head) * kDim + dim, value.x * factor, value.y * factor);
  }
}

__device__ inline void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// From the shared memory of a block of the cluster.
__device__ inline float2 load_remote([[maybe_unused]] const float* here, [[maybe_unused]] int block) {
  float2 value = {0, 0};
#if __CUDA_ARCH__ >= 900
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(here)), "r"(block));
  asm volatile("ld.shared::cluster.v2.f32 {%0,%1}, [%2];" : "=f"(value.x), "=f"(value.y) : "r"(there));
#endif
  return value;
}

// What a padding row gets.
template <int kDim>
__device__ void clear_heads(const Out& out, int64_t row, const HeadTile& tile) {
  for (int dim = 2 * static_cast<int>(threadIdx.x); dim < tile.heads * kDim; dim += 2 * kTileThreads)
    out.store(row, tile.first_head * kDim + dim, 0, 0);
}

template <typename T, int kDim>
__global__ __launch_bounds__(kTileThreads,
                             kDim > 64 ? 3
                                       : 5) void decode_kernel(const __grid_constant__ DecodeArgs<T> args) {
  constexpr int kPairs = (kDim / 2 + 31) / 32, kSteps = kDim / 16;
  constexpr int kValueTiles = kDim / 8 / kTileWarps < 2 ? 2 : kDim / 8 / kTileWarps;
  constexpr int kKvWarp = kTileWarps - 1;  // norms the new key; the others share the query heads
  allow_next();
  extern __shared__ __align__(128) unsigned char memory[];
  static_assert(sizeof(DecodeShared<T, kDim>) == shared_bytes_alone(kDim));
  auto& shared = *reinterpret_cast<DecodeShared<T, kDim>*>(memory);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int row = static_cast<int>(blockIdx.x) / args.splits,
            split = static_cast<int>(blockIdx.x) % args.splits;
  const HeadTile tile(args, static_cast<int>(blockIdx.y));

  const float* const norm_weight = warp == kKvWarp ? args.turn.k_weight : args.turn.q_weight;
  HeadPairs<kPairs> weight, head, turns, value;
  if (norm_weight) weight.load(norm_weight, kDim);
  wait_for_inputs();

  // All that does not wait for the position.
  if (warp == kKvWarp) {
    head.load(args.rows.k(row, tile.kv_head), kDim);
    value.load(args.rows.v(row, tile.kv_head), kDim);
  } else if (warp < tile.heads) {
    head.load(args.rows.q(row, tile.first_head + warp), kDim);
  }
  const int lane_key = warp * kWarpKeys + lane % kWarpKeys;  // of every chunk
  int page = args.pages.page_near(row, split * kChunk + lane_key);
  const int position = args.rows.positions[row];
  if (position < 0) {
    if (split == 0) clear_heads<kDim>(args.out, row, tile);
    return;
  }
  const ChunkRange range(args.rows, position);
  const int active = min(args.splits, range.count);  // blocks that have chunks
  if (split >= active) return;

  const auto page_in = [&](int chunk) {
    const int at = chunk * kChunk + lane_key;
    return range.sees(at) ? args.pages.page_of(row, at) : 0;
  };
  const auto copy_chunk = [&](int chunk, int page_id, int stage) {
    const int at = chunk * kChunk + lane_key;
    int slot = kClear;
    if (at == position)
      slot = kLeave;
    else if (range.sees(at))
      slot = args.pages.slot(page_id, tile.kv_head, at);
    copy_keys<T, kDim>(shared.k[stage], args.pages.k, slot);
    end_copy_group();
    copy_keys<T, kDim>(shared.v[stage], args.pages.v, slot);
    end_copy_group();
  };
  int chunk = range.first + split;
  const int last = range.last();
  if (range.first > 0) page = page_in(chunk);
  copy_chunk(chunk, page, 0);
  page = page_in(chunk + args.splits);

  turns.load_turns(args.turn, position, kDim);
  if (warp == kKvWarp) {
    if (norm_weight) head.norm(weight, kDim, args.turn.eps);
    head.rotate(turns);
    if (tile.appends && (last - chunk) % args.splits == 0) {
      const int64_t slot = args.pages.slot(args.pages.page_of(row, position), tile.kv_head, position);
      head.store(args.pages.k + slot * kDim, kDim);
      value.store(args.pages.v + slot * kDim, kDim);
    }
  } else {
    for (int h = warp; h < tile.heads; h += kKvWarp) {
      if (h != warp) head.load(args.rows.q(row, tile.first_head + h), kDim);
      if (norm_weight) head.norm(weight, kDim, args.turn.eps);
      head.rotate(turns);
      store_row<kDim>(shared.q, h, head);
    }
  }
  __syncthreads();
  uint32_t q[kSteps][4];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) load_left<kDim>(q[step], shared.q, 0, step);

  Partials partials =
      args.partials
          ? Partials(args.partials, static_cast<int64_t>(args.rows.count) * gridDim.y * args.most_chunks,
                     args.heads_per_tile, kDim)
          : Partials(reinterpret_cast<float*>(memory + sizeof(DecodeShared<T, kDim>)), args.rounds,
                     args.heads_per_tile, kDim);
  RowSums<kValueTiles> total;
  for (int round = 0; chunk <= last; ++round, chunk += args.splits) {
    const int stage = round % 2;
    wait_for_copy_groups<1>();  // the keys are here
    if (chunk == last && warp == kKvWarp) {
      store_row<kDim>(shared.k[stage], position % kChunk, head);
      store_row<kDim>(shared.v[stage], position % kChunk, value);
    }
    __syncthreads();  // everybody's keys; and nobody reads the other stage any more
    if (chunk + args.splits <= last) {
      copy_chunk(chunk + args.splits, page, 1 - stage);
      page = page_in(chunk + 2 * args.splits);
    } else {
      end_copy_group();
      end_copy_group();
    }

    float scores[2][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t keys[4];
      load_keys<kDim>(keys, shared.k[stage], warp * kWarpKeys, step);
      multiply<T>(scores[0], q[step], keys[0], keys[1]);
      multiply<T>(scores[1], q[step], keys[2], keys[3]);
    }
    float top[2] = {kNothing, kNothing};
    bool seen[2][2];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        seen[n][j] = range.sees(chunk * kChunk + warp * kWarpKeys + n * 8 + lane % 4 * 2 + j);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float& score = scores[n][2 * r + j];
          score = scaled_score(score, args.scale);
          if (seen[n][j]) top[r] = fmaxf(top[r], score);
        }
      }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 1));
      top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 2));
      if (lane % 4 == 0) shared.maxima[warp][lane / 4 + 8 * r] = top[r];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int tile_row = lane / 4 + 8 * r;
#pragma unroll
      for (int w = 0; w < kTileWarps; ++w) top[r] = fmaxf(top[r], shared.maxima[w][tile_row]);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float low = seen[n][0] ? weight_of(scores[n][2 * r], top[r]) : 0.0f;
        const float high = seen[n][1] ? weight_of(scores[n][2 * r + 1], top[r]) : 0.0f;
        T* const to = shared.weights + Swizzle<kChunk>::at(tile_row, warp * 2 + n) + lane % 4 * 2;
        *reinterpret_cast<uint32_t*>(to) = packed<T>(low, high);
      }
    }
    wait_for_copy_groups<2>();  // the values are here
    __syncthreads();

    const int first_dim = warp * kValueTiles * 8;
    if (first_dim >= kDim) continue;
    float sum[4] = {}, values[kValueTiles][4] = {};
#pragma unroll
    for (int step = 0; step < kChunk / 16; ++step) {
      uint32_t weights[4];
      load_left<kChunk>(weights, shared.weights, 0, step);
      multiply<T>(sum, weights, packed_ones<T>(), packed_ones<T>());
#pragma unroll
      for (int n = 0; n < kValueTiles; n += 2) {
        uint32_t b[4];
        load_values<kDim>(b, shared.v[stage], first_dim + n * 8, step);
        multiply<T>(values[n], weights, b[0], b[1]);
        multiply<T>(values[n + 1], weights, b[2], b[3]);
      }
    }
    if (active == 1) {
      total.merge(top, sum, values);
      continue;
    }
    const int64_t index =
        args.partials
            ? (static_cast<int64_t>(row) * gridDim.y + blockIdx.y) * args.most_chunks + chunk - range.first
            : round;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int tile_row = lane / 4 + 8 * r;
      if (tile_row >= tile.heads) continue;
      const int64_t at = index * args.heads_per_tile + tile_row;
      if (first_dim == 0 && lane % 4 == 0)
        *reinterpret_cast<float2*>(partials.sums + 2 * at) = {top[r], sum[2 * r]};
#pragma unroll
      for (int n = 0; n < kValueTiles; ++n)
        *reinterpret_cast<float2*>(partials.values + at * kDim + first_dim + n * 8 + lane % 4 * 2) = {
            values[n][2 * r], values[n][2 * r + 1]};
    }
  }

  if (active == 1) {
    const int first_dim = warp * kValueTiles * 8;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int tile_row = lane / 4 + 8 * r;
      if (tile_row >= tile.heads || first_dim >= kDim) continue;
      const float factor = share(total.sum[r]);
#pragma unroll
      for (int n = 0; n < kValueTiles; ++n)
        args.out.store(row, (tile.first_head + tile_row) * kDim + first_dim + n * 8 + lane % 4 * 2,
                       total.values[n][2 * r] * factor, total.values[n][2 * r + 1] * factor);
    }
  } else if (!args.partials) {
    const int shift = __ffs(args.splits) - 1;
    cluster_barrier();
    merge_chunks<kDim>(
        args.out, row, tile, range.count, split * kTileThreads + static_cast<int>(threadIdx.x),
        active * kTileThreads,
        [&](int c, int h) {
          return load_remote(partials.sums + 2 * ((c >> shift) * args.heads_per_tile + h),
                             c & (args.splits - 1));
        },
        [&](int c, int h, int dim) {
          return load_remote(partials.values + ((c >> shift) * args.heads_per_tile + h) * kDim + dim,
                             c & (args.splits - 1));
        });
    cluster_barrier();  // nobody leaves while its results are read
  }
}

// The merge where there are no clusters. Rows of one chunk are done already.
template <typename T, int kDim>
__global__ __launch_bounds__(kTileThreads) void merge_kernel(const __grid_constant__ DecodeArgs<T> args) {
  allow_next();
  wait_for_inputs();
  const int row = static_cast<int>(blockIdx.x), position = args.rows.positions[row];
  if (position < 0) return;
  const ChunkRange range(args.rows, position);
  if (range.count == 1) return;
  const HeadTile tile(args, static_cast<int>(blockIdx.y));
  const Partials partials(args.partials, static_cast<int64_t>(args.rows.count) * gridDim.y * args.most_chunks,
                          args.heads_per_tile, kDim);
  const int64_t first = (static_cast<int64_t>(row) * gridDim.y + blockIdx.y) * args.most_chunks;
  const auto at = [&](int c, int h) { return (first + c) * args.heads_per_tile + h; };
  merge_chunks<kDim>(
      args.out, row, tile, range.count, static_cast<int>(threadIdx.x), kTileThreads,
      [&](int c, int h) { return *reinterpret_cast<const float2*>(partials.sums + 2 * at(c, h)); },
      [&](int c, int h, int dim) {
        return *reinterpret_cast<const float2*>(partials.values + at(c, h) * kDim + dim);
      });
}

int64_t heads_per_tile(const HeadLayout& layout) {
  return std::min<int64_t>(layout.heads / layout.kv_heads, kTileRows);
}
int64_t tiles_per_row(const HeadLayout& layout) {
  return layout.kv_heads * blocks_for(layout.heads / layout.kv_heads, heads_per_tile(layout));
}

// Chunks that any row can see.
int64_t most_chunks(const AttentionCall& call) {
  const int64_t all = blocks_for(call.plan->pages_per_sequence * call.plan->page_size, kChunk);
  if (call.window == 0) return std::max<int64_t>(1, all);
  return std::clamp<int64_t>((call.window + kChunk - 2) / kChunk + 1, 1, std::max<int64_t>(1, all));
}

int64_t shared_bytes(const AttentionCall& call, int64_t splits) {
  const int64_t alone = shared_bytes_alone(call.layout.head_dim);
  if (splits == 1) return alone;
  return alone + static_cast<int64_t>(sizeof(float)) * Partials::floats(blocks_for(most_chunks(call), splits),
                                                                        heads_per_tile(call.layout),
                                                                        call.layout.head_dim);
}

int64_t most_shared_bytes(int architecture) {
  const bool server = architecture == 90 || architecture / 10 == 10;
  return (server ? 227 : 99) * 1024;
}

}  // namespace

DecodeSplit choose_decode_split(Context& ctx, const AttentionCall& call) {
  const StreamState& stream = state_of(ctx);
  const int64_t tiles = call.qkv.dim(0) * tiles_per_row(call.layout), chunks = most_chunks(call);
  DecodeSplit split;
  while (split.splits < kMostSplits && split.splits < chunks &&
         tiles * split.splits < 2 * stream.multiprocessors())
    split.splits *= 2;
  split.clustered = split.splits > 1 && stream.architecture() >= 90 &&
                    shared_bytes(call, split.splits) <= most_shared_bytes(stream.architecture());
  return split;
}

void decode_attention(Context& ctx, const AttentionCall& call, const DecodeSplit& split) {
  CHECK(split.splits >= 1 && (split.splits & (split.splits - 1)) == 0, split.splits, " splits");
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t rows = call.qkv.dim(0), tiles = tiles_per_row(call.layout), chunks = most_chunks(call);
  const bool merges_later = split.splits > 1 && !split.clustered;
  TensorView partials;
  if (merges_later)
    partials = ctx.workspace->alloc(
        DType::f32,
        {Partials::floats(rows * tiles * chunks, heads_per_tile(call.layout), call.layout.head_dim)});
  with_tensor_form(call, [&](auto type, auto dim) {
    using T = decltype(type);
    constexpr int kDim = decltype(dim)::value;
    const DecodeArgs<T> args{rows_of(call),
                             pages_of<T>(call),
                             turn_of(call),
                             out_of(call),
                             score_scale(kDim),
                             static_cast<int>(split.splits),
                             static_cast<int>(heads_per_tile(call.layout)),
                             static_cast<int>(tiles / call.layout.kv_heads),
                             static_cast<int>(blocks_for(chunks, split.splits)),
                             static_cast<float*>(partials.data()),
                             static_cast<int>(chunks)};
    Grid grid{dim3(static_cast<unsigned>(rows * split.splits), static_cast<unsigned>(tiles)),
              dim3(kTileThreads),
              static_cast<size_t>(shared_bytes(call, split.clustered ? split.splits : 1))};
    if (split.clustered) grid.cluster = static_cast<unsigned>(split.splits);
    launch(ctx, "decode_attention", grid, decode_kernel<T, kDim>, args);
    if (merges_later)
      launch(ctx, "merge_attention",
             Grid{dim3(static_cast<unsigned>(rows), static_cast<unsigned>(tiles)), dim3(kTileThreads)},
             merge_kernel<T, kDim>, args);
  });
}

}  // namespace shoal::ops::cuda
