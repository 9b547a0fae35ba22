// self_attention on the CPU: tiles of queries of one head against the keys of their segment, in chunks
// counted from the segment's first row and merged in rising order (vector_attention.h). So a row's result
// depends only on its segment.
#include <algorithm>
#include <cmath>

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/segment_pieces.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

constexpr int kQueries = 32;  // 32 queries of 64 floats, 16 keys and their scores fit in L1

class SelfTileWorker {
 public:
  static int64_t floats(int64_t dim) {
    return attention_scratch(dim, kQueries) + 2 * kQueries * attention_partial(dim);
  }

  SelfTileWorker(TensorView qkv, int64_t heads, TensorView out, float* scratch)
      : qkv_(qkv),
        out_(out),
        heads_(heads),
        dim_(qkv.dim(1) / (3 * heads)),
        scratch_(scratch),
        results_(scratch + attention_scratch(dim_, kQueries)),
        sums_(results_ + kQueries * attention_partial(dim_)) {}

  // Queries `tile` of the segment that begins at row `begin` and has `rows`.
  void run(const SegmentPiece& tile, int64_t begin, int64_t rows, int64_t head) {
    const auto queries = static_cast<int>(tile.count);
    const int64_t partial = attention_partial(dim_);
    for (int i = 0; i < queries; ++i) queries_[i] = qkv_.row<float>(begin + tile.first + i) + head * dim_;
    for (int64_t first = 0; first < rows; first += kAttentionChunk) {
      const int64_t keys = std::min<int64_t>(kAttentionChunk, rows - first);
      compute(queries, begin + first, keys, head, first == 0 ? sums_ : results_);
      if (first == 0) continue;
      for (int i = 0; i < queries; ++i)
        kernels_.attention_merge(results_ + i * partial, sums_ + i * partial, static_cast<int>(dim_));
    }
    for (int i = 0; i < queries; ++i)
      kernels_.attention_finish(sums_ + i * partial, out_.row<float>(begin + tile.first + i) + head * dim_,
                                static_cast<int>(dim_));
  }

 private:
  // Partial results of the queries with `count` keys from row `first` of the buffer on.
  void compute(int queries, int64_t first, int64_t count, int64_t head, float* results) {
    for (int64_t k = 0; k < count; ++k) {
      const float* key = qkv_.row<float>(first + k) + (heads_ + head) * dim_;
      keys_[k] = key;
      values_[k] = key + heads_ * dim_;
    }
    for (int i = 0; i < queries; ++i) {
      begin_[i] = 0;
      end_[i] = static_cast<int>(count);
      result_[i] = results + i * attention_partial(dim_);
    }
    kernels_.attention_chunk({.keys = keys_,
                              .values = values_,
                              .row = KvRow::f32,
                              .head_dim = static_cast<int>(dim_),
                              .scale = 1.0f / std::sqrt(static_cast<float>(dim_)),
                              .queries = queries_,
                              .query_count = queries,
                              .begin = begin_,
                              .end = end_,
                              .scratch = scratch_,
                              .result = result_});
  }

  const VectorKernels& kernels_ = vector_kernels();
  TensorView qkv_, out_;
  int64_t heads_, dim_;
  float *scratch_, *results_, *sums_;
  const void* keys_[kAttentionChunk];
  const void* values_[kAttentionChunk];
  const float* queries_[kQueries];
  int begin_[kQueries], end_[kQueries];
  float* result_[kQueries];
};

}  // namespace

void self_attention(Context& ctx, TensorView qkv, int64_t heads, const Segments& segments, TensorView out) {
  const Workspace::Scope scope(*ctx.workspace);
  clear_gaps(segments, out);
  const std::span<const SegmentPiece> tiles =
      cut_segments(ctx, segments, kQueries, [&](int64_t s) { return segments.rows(s); });
  const int64_t dim = qkv.dim(1) / (3 * heads);
  const TensorView scratch =
      ctx.workspace->alloc(DType::f32, {ctx.team->size(), SelfTileWorker::floats(dim)});
  ctx.team->parallel_for(
      static_cast<int64_t>(tiles.size()) * heads, 1, [&](int64_t begin, int64_t end, int worker) {
        SelfTileWorker tile_worker(qkv, heads, out, scratch.row<float>(worker));
        for (int64_t i = begin; i < end; ++i) {
          const SegmentPiece& tile = tiles[static_cast<size_t>(i / heads)];
          tile_worker.run(tile, segments.begin(tile.segment), segments.rows(tile.segment), i % heads);
        }
      });
}

}  // namespace shoal::ops::cpu
