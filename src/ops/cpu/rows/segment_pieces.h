// Shared by the ops over segments: work cut into pieces of a segment, and zeroed gaps.
#pragma once

#include <cstring>

#include "base/function_ref.h"
#include "ops/context.h"
#include "ops/cpu/rows/segment_rows.h"
#include "ops/segments.h"

namespace shoal::ops::cpu {

// Items [first, first + count) of a segment.
struct SegmentPiece {
  int64_t segment, first, count;
};

// items(s) items of every segment, in pieces of `step`, the last one of a segment shorter.
inline std::span<const SegmentPiece> cut_segments(Context& ctx, const Segments& segments, int64_t step,
                                                  FunctionRef<int64_t(int64_t)> items) {
  int64_t count = 0;
  for (int64_t s = 0; s < segments.count(); ++s) count += (items(s) + step - 1) / step;
  const std::span<SegmentPiece> pieces = ctx.workspace->array<SegmentPiece>(count);
  size_t used = 0;
  for (int64_t s = 0; s < segments.count(); ++s)
    for (int64_t first = 0; first < items(s); first += step)
      pieces[used++] = {s, first, std::min(step, items(s) - first)};
  return pieces;
}

// Sets the rows of y, f32 [total_rows, width], outside all segments to zeros.
inline void clear_gaps(const Segments& segments, TensorView y) {
  if (y.is_sized_only()) return;
  for_each_piece(
      segments, 0, segments.total_rows(), [](int64_t, int64_t, int64_t) {},
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          std::memset(y.row<float>(row), 0, static_cast<size_t>(y.dim(1)) * sizeof(float));
      });
}

}  // namespace shoal::ops::cpu
