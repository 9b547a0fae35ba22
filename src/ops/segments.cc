#include "ops/segments.h"

#include "base/error.h"

namespace shoal::ops {

void check_segments(const char* op, const Segments& segments) {
  const int64_t count = segments.count();
  CHECK(segments.frames.size() == segments.starts.size(), op, ": ", count, " starts and ",
        segments.frames.size(), " lengths of segments");
  CHECK(segments.rate >= 1 && segments.extra >= 0 && segments.total >= 0, op, ": segments of ",
        segments.total, " frames at rate ", segments.rate, " with ", segments.extra, " more rows");
  CHECK(segments.tables.empty() ||
            (segments.tables.dtype() == DType::i32 && segments.tables.shape() == Shape{2, count}),
        op, ": segment tables are ", name_of(segments.tables.dtype()), " ", segments.tables.shape(),
        ", expected I32 [2, ", count, "]");
  int64_t end = 0;  // of the segment before
  for (int64_t s = 0; s < count; ++s) {
    CHECK(segments.frames[static_cast<size_t>(s)] >= 1, op, ": segment ", s, " has ",
          segments.frames[static_cast<size_t>(s)], " frames");
    CHECK(segments.begin(s) >= end, op, ": segment ", s, " begins at row ", segments.begin(s),
          ", behind row ", end, " at the earliest");
    end = segments.begin(s) + segments.rows(s);
  }
  CHECK(end <= segments.total_rows(), op, ": segments end at row ", end, " of ", segments.total_rows());
}

}  // namespace shoal::ops
