// Utterances end to end (ops/segments.h) as kernels see them, and how their rows are shared out to blocks.
#pragma once

#include <cstdint>

#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/rows_access.cuh"
#include "ops/segments.h"

namespace shoal::ops::cuda {

struct SegmentRows {
  const int32_t* tables = nullptr;  // starts, then frames
  int count = 0;
  int64_t rate = 1, extra = 0, total_rows = 0;

  __device__ int64_t begin(int segment) const { return tables[segment] * rate; }
  __device__ int64_t rows(int segment) const { return tables[count + segment] * rate + extra; }
  __device__ int64_t end(int segment) const { return begin(segment) + rows(segment); }
};

inline SegmentRows segment_rows(const Segments& segments) {
  CHECK(segments.count() == 0 || !segments.tables.empty(), "segments without tables on the device");
  return {.tables = segments.tables.empty() ? nullptr : segments.tables.as<int32_t>(),
          .count = static_cast<int>(segments.count()),
          .rate = segments.rate,
          .extra = segments.extra,
          .total_rows = segments.total_rows()};
}

__device__ inline int thread_of_block() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

// Rows [begin, end) in order, in pieces that are one segment's, inside(segment, first, last), or a gap's,
// gap(first, last). All threads of a block ask together, and get the same.
template <typename Inside, typename Gap>
__device__ void each_piece(const SegmentRows& s, int64_t begin, int64_t end, Inside inside, Gap gap) {
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  int segment = -1;  // the last one that begins at or before `begin`
  for (int base = 0; base < s.count; base += threads) {
    const int i = base + thread_of_block();
    segment += __syncthreads_count(i < s.count && s.begin(i) <= begin);
  }
  for (segment = max(segment, 0); segment < s.count && begin < end; ++segment) {
    const int64_t first = min(max(s.begin(segment), begin), end);
    const int64_t last = min(max(s.end(segment), first), end);
    if (begin < first) gap(begin, first);
    if (first < last) inside(segment, first, last);
    begin = last;
  }
  if (begin < end) gap(begin, end);
}

// Items [first, first + count) of a segment that has `items` of them.
struct SegmentPiece {
  int segment = -1;  // -1: no such piece
  int64_t first = 0, count = 0;
  bool is_first = false, is_last = false;  // of its segment
};

// Piece `piece` of the segments' items, rows * per_row + more of each: pieces of `step` are dealt out to the
// segments in order, the last one of a segment is shorter. The same for all lanes of a warp, which ask
// together.
__device__ inline SegmentPiece piece_of(const SegmentRows& s, int64_t piece, int step, int64_t per_row = 1,
                                        int64_t more = 0) {
  const int lane = thread_of_block() % 32;
  int64_t before = 0;  // pieces of the segments before
  for (int base = 0; base < s.count; base += 32) {
    const int segment = base + lane;
    const int64_t items = segment < s.count ? s.rows(segment) * per_row + more : 0;
    const int64_t pieces = (items + step - 1) / step;
    int64_t end = pieces;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int64_t other = __shfl_up_sync(~0u, end, distance);
      if (lane >= distance) end += other;
    }
    const int64_t mine = piece - before - (end - pieces);
    const unsigned found = __ballot_sync(~0u, mine >= 0 && mine < pieces);
    if (found != 0) {
      const int from = __ffs(static_cast<int>(found)) - 1;
      const int64_t first = __shfl_sync(~0u, mine, from) * step, all = __shfl_sync(~0u, items, from);
      return {.segment = base + from,
              .first = first,
              .count = min(int64_t{step}, all - first),
              .is_first = first == 0,
              .is_last = first + step >= all};
    }
    before += __shfl_sync(~0u, end, 31);
  }
  return {};
}

// How many pieces there can be: no segment needs more than one more than its share.
inline int64_t most_pieces(const Segments& segments, int64_t step, int64_t per_row = 1, int64_t more = 0) {
  return (segments.total_rows() * per_row + segments.count() * more) / step + segments.count();
}

// The gap behind a segment, up to the next one or the end of the buffer; that before the first is number -1.
struct Gap {
  int64_t begin, end;
};
__device__ inline Gap gap_behind(const SegmentRows& s, int segment) {
  return {segment < 0 ? 0 : s.end(segment), segment + 1 < s.count ? s.begin(segment + 1) : s.total_rows};
}

// store(row) for rows of the gaps that the block with this piece answers for: the one behind a segment's last
// piece, and before the first segment. All threads of a block call it.
template <typename Store>
__device__ void each_gap_of(const SegmentRows& s, const SegmentPiece& piece, Store store) {
  if (piece.is_last) {
    const Gap gap = gap_behind(s, piece.segment);
    store(gap);
  }
  if (piece.is_first && piece.segment == 0) store(gap_behind(s, -1));
}

// Zeros into all items of a gap, `per_row` a row, of a dense y; by all threads of a block.
__device__ inline void clear_items(float* y, const Gap& gap, int64_t per_row) {
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  for (int64_t i = gap.begin * per_row + thread_of_block(); i < gap.end * per_row; i += threads) y[i] = 0.0f;
}

// Whether every row of y can be stored in vectors of four.
inline bool has_four_rows(TensorView y) {
  const int64_t vector = 4 * size_of(y.dtype());
  return reinterpret_cast<uintptr_t>(y.data()) % static_cast<uintptr_t>(vector) == 0 &&
         y.stride(0) % 4 == 0 && y.dim(1) % 4 == 0;
}

// Elements k .. k + 3 of a row, as far as it goes.  vectors: of has_four_rows.
template <typename T>
__device__ inline void store_four_as(T* row, int k, int dim, bool vectors, const float4& v) {
  if (vectors) {
    struct alignas(4 * sizeof(T)) Four {
      T value[4];
    };
    *reinterpret_cast<Four*>(row + k) = {narrowed_value<T>(v.x), narrowed_value<T>(v.y),
                                         narrowed_value<T>(v.z), narrowed_value<T>(v.w)};
    return;
  }
  row[k] = narrowed_value<T>(v.x);
  if (k + 1 < dim) row[k + 1] = narrowed_value<T>(v.y);
  if (k + 2 < dim) row[k + 2] = narrowed_value<T>(v.z);
  if (k + 3 < dim) row[k + 3] = narrowed_value<T>(v.w);
}

}  // namespace shoal::ops::cuda
