// Shared by the tests of the ops over segments of a sequence: a batch of utterances, its gaps full of
// garbage.
#pragma once

#include <limits>
#include <numeric>

#include "ops/segments.h"
#include "ops/vector_testing.h"

namespace shoal::ops {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Utterances of these frames, with `gap` frames before, between and after them.
struct Utterances {
  std::vector<int32_t> starts, frames;
  int64_t total;

  Utterances(std::vector<int32_t> lengths, int32_t gap) : frames(std::move(lengths)), total(gap) {
    for (const int32_t length : frames) {
      starts.push_back(static_cast<int32_t>(total));
      total += length + gap;
    }
  }
  Segments segments(int64_t rate = 1, int64_t extra = 0) const& {
    return {.starts = starts, .frames = frames, .total = total, .rate = rate, .extra = extra};
  }
  Segments segments(int64_t rate = 1, int64_t extra = 0) const&& = delete;  // they would look at freed tables
};

// A buffer of total_rows x width, `garbage` where no utterance is.
inline std::vector<float> laid_out(const std::vector<std::vector<float>>& rows, const Segments& segments,
                                   int64_t width, float garbage) {
  std::vector<float> buffer(static_cast<size_t>(segments.total_rows() * width), garbage);
  for (int64_t s = 0; s < segments.count(); ++s)
    std::ranges::copy(rows[static_cast<size_t>(s)], buffer.begin() + segments.begin(s) * width);
  return buffer;
}

// The rows of each utterance; expects that all others are zeros.
inline std::vector<std::vector<float>> taken_out(std::vector<float> buffer, const Segments& segments,
                                                 int64_t width) {
  std::vector<std::vector<float>> rows;
  for (int64_t s = 0; s < segments.count(); ++s) {
    const auto begin = buffer.begin() + segments.begin(s) * width;
    const auto end = begin + segments.rows(s) * width;
    rows.emplace_back(begin, end);
    std::fill(begin, end, 0.0f);
  }
  EXPECT_THAT(buffer, testing::Each(0.0f)) << "what is in no segment";
  return rows;
}

}  // namespace shoal::ops
