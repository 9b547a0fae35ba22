// Which rows of a buffer are a segment's, and which are gaps.
#pragma once

#include <algorithm>

#include "ops/segments.h"

namespace shoal::ops::cpu {

// Rows [begin, end) in order, in pieces that are one segment's, inside(segment, begin, end), or a gap's,
// gap(begin, end).
template <typename Inside, typename Gap>
void for_each_piece(const Segments& segments, int64_t begin, int64_t end, Inside inside, Gap gap) {
  const auto behind = [&](int64_t row, int32_t start) { return row < start * segments.rate; };
  // The last segment that starts at or before `begin` (which may be inside it); else the first one.
  int64_t segment = std::upper_bound(segments.starts.begin(), segments.starts.end(), begin, behind) -
                    segments.starts.begin();
  segment = std::max<int64_t>(0, segment - 1);
  for (; segment < segments.count() && begin < end; ++segment) {
    const int64_t first = std::clamp(segments.begin(segment), begin, end);
    const int64_t last = std::clamp(segments.begin(segment) + segments.rows(segment), first, end);
    if (begin < first) gap(begin, first);
    if (first < last) inside(segment, first, last);
    begin = last;
  }
  if (begin < end) gap(begin, end);
}

}  // namespace shoal::ops::cpu
