// paged_attention on the CPU. The positions of a sequence are cut into chunks of kAttentionChunk, counted
// from position 0; each chunk gives its own partial sums (vector_attention.h), which are merged in rising
// order. So a row's result depends only on its position and window: not on the other rows, nor on how many
// workers computed its chunks.
#include <algorithm>
#include <cmath>

#include "base/f16.h"
#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kQueriesPerTile = 32;     // 32 queries of 128 floats, 16 keys and their scores fit in L1
constexpr int64_t kFlopsPerTask = 100'000;  // a few microseconds

// Rows of one sequence that share keys, all of one page table.
struct Tile {
  int64_t sequence, row, rows;
  int64_t first, last;  // positions that any of the rows sees, inclusive
  int64_t partial;      // index of its first partial result when chunks are computed apart

  int64_t first_chunk() const { return first / kAttentionChunk; }
  int64_t chunks() const { return last / kAttentionChunk - first_chunk() + 1; }
};

struct Batch {
  TensorView qkv;
  const HeadLayout& layout;
  const BatchPlan& plan;
  const KvLayer& cache;
  int64_t window;
  TensorView out;

  int64_t group() const { return layout.heads / layout.kv_heads; }
  int64_t rows_per_tile() const { return std::max<int64_t>(1, kQueriesPerTile / group()); }
  int64_t position(int64_t row) const { return plan.positions[static_cast<size_t>(row)]; }
  int64_t first_seen(int64_t row) const {
    return window == 0 ? 0 : std::max<int64_t>(0, position(row) - window + 1);
  }
  const float* query(const Tile& tile, int64_t kv_head, int64_t i) const {
    return qkv.row<float>(tile.row + i / group()) + (kv_head * group() + i % group()) * layout.head_dim;
  }
  float* result(const Tile& tile, int64_t kv_head, int64_t i) const {
    return out.row<float>(tile.row + i / group()) + (kv_head * group() + i % group()) * layout.head_dim;
  }
};

std::span<Tile> plan_tiles(Context& ctx, const Batch& batch) {
  const RaggedRows& rows = batch.plan.rows;
  const int64_t step = batch.rows_per_tile();
  const std::span<Tile> tiles = ctx.workspace->array<Tile>(rows.rows() / step + rows.sequences());
  size_t used = 0;
  int64_t partial = 0;
  for (int s = 0; s < rows.sequences(); ++s)
    for (int64_t at = 0; at < rows.count(s); at += step) {
      Tile tile{s, rows.begin(s) + at, std::min(step, rows.count(s) - at), INT64_MAX, 0, partial};
      for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
        tile.first = std::min(tile.first, batch.first_seen(row));
        tile.last = std::max(tile.last, batch.position(row));
      }
      partial += tile.chunks() * batch.layout.heads * tile.rows;
      tiles[used++] = tile;
    }
  return tiles.first(used);
}

KvRow row_of(DType dtype) {
  return dtype == DType::i8 ? KvRow::i8 : dtype == DType::bf16 ? KvRow::bf16 : KvRow::f32;
}

// What one worker needs for a tile and kv head; slices of the workspace.
class PagedTileWorker {
 public:
  static int64_t floats(const Batch& batch) {
    const int64_t queries = batch.rows_per_tile() * batch.group();
    return attention_scratch(batch.layout.head_dim, queries) +
           2 * queries * attention_partial(batch.layout.head_dim);
  }

  PagedTileWorker(const Batch& batch, float* scratch)
      : batch_(batch), kernels_(vector_kernels()), scratch_(scratch) {}

  // Partial result of query i of chunk number `chunk` -> results + i * attention_partial, where the query
  // sees any of it.
  void compute(const Tile& tile, int64_t kv_head, int64_t chunk, float* results) {
    find_rows(tile, kv_head, chunk);
    const int64_t start = chunk * kAttentionChunk, dim = batch_.layout.head_dim;
    const float* queries[kMostQueries];
    int begin[kMostQueries], end[kMostQueries];
    float* result[kMostQueries];
    // A group may be larger than a tile is meant to be: it is worked off in pieces.
    const int64_t count = tile.rows * batch_.group();
    for (int64_t i = 0; i < count;) {
      int used = 0;
      for (; i < count && used < kMostQueries; ++i) {
        const int64_t row = tile.row + i / batch_.group();
        begin[used] = static_cast<int>(std::max<int64_t>(0, batch_.first_seen(row) - start));
        end[used] = static_cast<int>(std::min<int64_t>(kAttentionChunk, batch_.position(row) + 1 - start));
        if (begin[used] >= end[used]) continue;
        queries[used] = batch_.query(tile, kv_head, i);
        result[used++] = results + i * attention_partial(dim);
      }
      if (used == 0) continue;
      kernels_.attention_chunk({.keys = keys_,
                                .values = values_,
                                .key_scales = has_scales() ? key_scales_ : nullptr,
                                .value_scales = has_scales() ? value_scales_ : nullptr,
                                .row = row_of(batch_.cache.k.dtype()),
                                .head_dim = static_cast<int>(dim),
                                .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
                                .queries = queries,
                                .query_count = used,
                                .begin = begin,
                                .end = end,
                                .scratch = scratch_,
                                .result = result});
    }
  }

  bool sees(const Tile& tile, int64_t i, int64_t chunk) const {
    const int64_t row = tile.row + i / batch_.group();
    return batch_.first_seen(row) / kAttentionChunk <= chunk &&
           chunk <= batch_.position(row) / kAttentionChunk;
  }

  // Adds chunk results to the sums of a tile and kv head: the first chunk that a query sees starts its sum.
  void merge(const Tile& tile, int64_t chunk, const float* results, float* sums) const {
    const int64_t size = attention_partial(batch_.layout.head_dim);
    for (int64_t i = 0; i < tile.rows * batch_.group(); ++i) {
      if (!sees(tile, i, chunk)) continue;
      const int64_t row = tile.row + i / batch_.group();
      if (batch_.first_seen(row) / kAttentionChunk == chunk)
        std::copy_n(results + i * size, size, sums + i * size);
      else
        kernels_.attention_merge(results + i * size, sums + i * size,
                                 static_cast<int>(batch_.layout.head_dim));
    }
  }

  void finish(const Tile& tile, int64_t kv_head, const float* sums) const {
    const int64_t size = attention_partial(batch_.layout.head_dim);
    for (int64_t i = 0; i < tile.rows * batch_.group(); ++i)
      kernels_.attention_finish(sums + i * size, batch_.result(tile, kv_head, i),
                                static_cast<int>(batch_.layout.head_dim));
  }

  // All chunks in order.
  void run(const Tile& tile, int64_t kv_head) {
    const int64_t queries = batch_.rows_per_tile() * batch_.group(), dim = batch_.layout.head_dim;
    float* sums = scratch_ + attention_scratch(dim, queries);
    float* results = sums + queries * attention_partial(dim);
    for (int64_t chunk = tile.first_chunk(); chunk < tile.first_chunk() + tile.chunks(); ++chunk) {
      compute(tile, kv_head, chunk, results);
      merge(tile, chunk, results, sums);
    }
    finish(tile, kv_head, sums);
  }

 private:
  static constexpr int kMostQueries = kQueriesPerTile;

  bool has_scales() const { return !batch_.cache.k_scales.empty(); }

  // Pointers to the keys and values of the chunk's positions that the tile sees, and their scales; those of
  // other positions are 0. No other page is looked up: it may be gone.
  void find_rows(const Tile& tile, int64_t kv_head, int64_t chunk) {
    const BatchPlan& plan = batch_.plan;
    const int64_t dim = batch_.layout.head_dim, start = chunk * kAttentionChunk;
    const int64_t row_bytes = dim * size_of(batch_.cache.k.dtype());
    const int64_t begin = std::max(tile.first, start), end = std::min(tile.last + 1, start + kAttentionChunk);
    if (has_scales()) {
      std::ranges::fill(key_scales_, 0.0f);
      std::ranges::fill(value_scales_, 0.0f);
    }
    for (int64_t at = begin; at < end;) {
      const int64_t logical = at / plan.page_size;
      const int64_t page =
          plan.page_table[static_cast<size_t>(tile.sequence * plan.pages_per_sequence + logical)];
      CHECK(0 <= page && page < batch_.cache.k.dim(0), "paged_attention: page ", page, " of ",
            batch_.cache.k.dim(0));
      const int64_t first_slot = (page * batch_.layout.kv_heads + kv_head) * plan.page_size;
      for (const int64_t stop = std::min(end, (logical + 1) * plan.page_size); at < stop; ++at) {
        const int64_t slot = first_slot + at % plan.page_size, offset = slot * row_bytes;
        keys_[at - start] = static_cast<const char*>(batch_.cache.k.data()) + offset;
        values_[at - start] = static_cast<const char*>(batch_.cache.v.data()) + offset;
        if (!has_scales()) continue;
        key_scales_[at - start] = f16_to_float(batch_.cache.k_scales.as<F16>()[slot]);
        value_scales_[at - start] = f16_to_float(batch_.cache.v_scales.as<F16>()[slot]);
      }
    }
  }

  const Batch& batch_;
  const VectorKernels& kernels_;
  float* scratch_;
  const void* keys_[kAttentionChunk];
  const void* values_[kAttentionChunk];
  float key_scales_[kAttentionChunk], value_scales_[kAttentionChunk];
};

// Few rows and long contexts, as in decoding for one listener: the chunks are computed in parallel too.
void run_split(Context& ctx, const Batch& batch, std::span<const Tile> tiles, TensorView scratch) {
  const int64_t kv_heads = batch.layout.kv_heads, size = attention_partial(batch.layout.head_dim);
  struct Task {
    int64_t tile, kv_head, chunk;
  };
  int64_t count = 0;
  for (const Tile& tile : tiles) count += tile.chunks() * kv_heads;
  const std::span<Task> tasks = ctx.workspace->array<Task>(count);
  size_t used = 0;
  for (size_t t = 0; t < tiles.size(); ++t)
    for (int64_t head = 0; head < kv_heads; ++head)
      for (int64_t chunk = 0; chunk < tiles[t].chunks(); ++chunk)
        tasks[used++] = {static_cast<int64_t>(t), head, chunk};
  const Tile& last = tiles.back();
  const int64_t partials = last.partial + last.chunks() * last.rows * batch.layout.heads;
  float* results = ctx.workspace->alloc(DType::f32, {partials, size}).as<float>();
  const auto results_of = [&](const Tile& tile, int64_t head, int64_t chunk) {
    return results + (tile.partial + (head * tile.chunks() + chunk) * tile.rows * batch.group()) * size;
  };
  ctx.team->parallel_for(count, 1, [&](int64_t begin, int64_t end, int worker) {
    PagedTileWorker tile_worker(batch, scratch.row<float>(worker));
    for (int64_t i = begin; i < end; ++i) {
      const Task& task = tasks[static_cast<size_t>(i)];
      const Tile& tile = tiles[static_cast<size_t>(task.tile)];
      tile_worker.compute(tile, task.kv_head, tile.first_chunk() + task.chunk,
                          results_of(tile, task.kv_head, task.chunk));
    }
  });
  ctx.team->parallel_for(
      static_cast<int64_t>(tiles.size()) * kv_heads, 4, [&](int64_t begin, int64_t end, int worker) {
        const PagedTileWorker tile_worker(batch, scratch.row<float>(worker));
        float* sums = scratch.row<float>(worker);
        for (int64_t i = begin; i < end; ++i) {
          const Tile& tile = tiles[static_cast<size_t>(i / kv_heads)];
          for (int64_t chunk = 0; chunk < tile.chunks(); ++chunk)
            tile_worker.merge(tile, tile.first_chunk() + chunk, results_of(tile, i % kv_heads, chunk), sums);
          tile_worker.finish(tile, i % kv_heads, sums);
        }
      });
}

}  // namespace

void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out) {
  const Workspace::Scope scope(*ctx.workspace);
  const Batch batch{qkv, layout, plan, cache, window, out};
  const std::span<const Tile> tiles = plan_tiles(ctx, batch);
  const TensorView scratch =
      ctx.workspace->alloc(DType::f32, {ctx.team->size(), PagedTileWorker::floats(batch)});
  const int64_t count = static_cast<int64_t>(tiles.size()) * layout.kv_heads;
  int64_t keys = 0, most_chunks = 0;
  for (const Tile& tile : tiles) {
    keys += tile.rows * (tile.last - tile.first + 1);
    most_chunks = std::max(most_chunks, tile.chunks());
  }
  constexpr int64_t kTasksPerWorker = 4;  // enough that a slow worker does not hold up the others
  if (ctx.team->size() > 1 && most_chunks > 1 && count < kTasksPerWorker * ctx.team->size())
    return run_split(ctx, batch, tiles, scratch);
  const int64_t flops_per_task = 4 * keys * layout.heads * layout.head_dim / count;
  const int64_t grain = std::max<int64_t>(1, kFlopsPerTask / std::max<int64_t>(1, flops_per_task));
  ctx.team->parallel_for(count, grain, [&](int64_t begin, int64_t end, int worker) {
    PagedTileWorker tile_worker(batch, scratch.row<float>(worker));
    for (int64_t i = begin; i < end; ++i)
      tile_worker.run(tiles[static_cast<size_t>(i / layout.kv_heads)], i % layout.kv_heads);
  });
}

}  // namespace shoal::ops::cpu
