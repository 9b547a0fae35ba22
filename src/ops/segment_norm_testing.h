// Shared by the tests of the ops over segments on every device: batches with gaps, styles, and error bounds
// of a norm.
#pragma once

#include <bit>
#include <cmath>

#include "ops/segment_norm.h"
#include "ops/vector_testing.h"

namespace shoal::ops::segment_testing {

using Floats = std::vector<float>;
using Frames = std::vector<int32_t>;

constexpr float kEps = 1e-5f;
constexpr int64_t kBlockRows = 64;  // whose mean is one chain of sums

// Utterances with gaps before, between and after them.
struct Batch {
  Frames starts, frames;
  int64_t total = 0, rate = 1, extra = 0;

  Segments segments() const {
    return {.starts = starts, .frames = frames, .total = total, .rate = rate, .extra = extra};
  }
};

inline const Batch kAlone{{0}, {70}, 70};
inline const Batch kMixed{{3, 10, 11, 80, 200}, {1, 1, 64, 65, 333}, 540};
inline const Batch kAtARate{{1, 5, 20}, {3, 10, 7}, 29, 20, 1};

// Many short ones, so that blocks see several, and a long one of parts that are not full.
inline Batch crowd() {
  Batch batch{{}, {}, 5, 2, 1};
  for (int32_t i = 0; i < 300; ++i) {
    batch.starts.push_back(static_cast<int32_t>(batch.total));
    batch.frames.push_back(i == 150 ? 1801 : 1 + i * 7 % 5);
    batch.total += batch.frames.back() + 1 + i % 3;
  }
  return batch;
}

// Segments between those that a test looks at.
inline int64_t step_of(const Segments& segments, int64_t step) { return segments.count() > 100 ? step : 1; }

enum class After { nothing, leaky, snake };

struct Style {
  Floats rows;  // [segments, scales and shifts]
  ref::Values scales(int64_t segment, int64_t channels) const {
    return slice(wide(rows), segment * 2 * channels, channels);
  }
  ref::Values shifts(int64_t segment, int64_t channels) const {
    return slice(wide(rows), (segment * 2 + 1) * channels, channels);
  }
};

inline Style random_style(int64_t segments, int64_t channels) {
  return {random_values(segments * 2 * channels, 21, 0.7f)};
}

// Of either sign; some so large that z must be reduced, some small.
inline Floats random_alpha(int64_t channels) {
  Floats alpha = random_values(channels, 22, 2);
  for (size_t c = 0; c < alpha.size(); ++c) {
    alpha[c] += alpha[c] < 0 ? -0.05f : 0.05f;
    if (c % 7 == 3) alpha[c] *= 50;
    if (c % 7 == 5) alpha[c] *= 1e-3f;
  }
  return alpha;
}

inline Floats rows_of(TensorView view, int64_t begin, int64_t end) {
  Floats values;
  for (int64_t row = begin; row < end; ++row)
    values.insert(values.end(), view.row<float>(row), view.row<float>(row) + view.dim(1));
  return values;
}

// Expects +0 in every channel of rows outside all segments.
inline void expect_empty_gaps(const Floats& y, int64_t width, const Segments& segments, int64_t times = 1) {
  int64_t segment = 0;
  for (int64_t row = 0; row < segments.total_rows() * times; ++row) {
    while (segment < segments.count() && row >= times * (segments.begin(segment) + segments.rows(segment)))
      ++segment;
    if (segment < segments.count() && row >= times * segments.begin(segment)) continue;
    for (int64_t c = 0; c < width; ++c)
      ASSERT_EQ(std::bit_cast<uint32_t>(y[static_cast<size_t>(row * width + c)]), 0u) << row << ", " << c;
  }
}

// Rows of x in the segments, NaN in the gaps.
inline Floats random_rows(const Segments& segments, int64_t width, unsigned seed, float mean = 0) {
  Floats x(static_cast<size_t>(segments.total_rows() * width), NAN);
  for (int64_t s = 0; s < segments.count(); ++s) {
    Floats own = random_values(segments.rows(s) * width, seed + static_cast<unsigned>(s));
    for (float& v : own) v = 2 * v + mean;
    std::ranges::copy(own, x.begin() + segments.begin(s) * width);
  }
  return x;
}

// Most that z, before the activation, may be off, where z = scale (x - mean) + shift.
inline double error_of_norm(double x, double z, double scale, double shift, double mean_magnitude,
                            double deviation) {
  const double mean_error = (kBlockRows + 4) * kUnit * mean_magnitude + 2e-12;
  // Half of the error of the sum of squares, plus the contribution of the block means.
  const double relative = (kBlockRows / 2 + 8) * kUnit + mean_error / deviation;
  return std::abs(scale) * (mean_error + 2 * kUnit * std::abs(x)) + relative * std::abs(z - shift) +
         2 * kUnit * (std::abs(z) + std::abs(shift));
}

inline double activated(double z, After after, double alpha) {
  if (after == After::leaky) return ref::leaky_relu(z, 0.2f);
  return after == After::snake ? ref::plain_snake(z, alpha) : z;
}

// The activation's effect on an error of z, plus its own error.
inline double error_of_activation(double z, double y, double error, After after, double alpha) {
  if (after != After::snake) return error + kUnit * std::abs(y);
  return 2 * error + 2 * kUnit * (std::abs(z) + std::abs(y)) + (1.5e-7 + 4 * kUnit) / std::abs(alpha);
}

inline void expect_normed(const Floats& got, const ref::Values& x, const ref::Values& scales,
                          const ref::Values& shifts, After after = After::nothing, const Floats& alpha = {}) {
  const size_t channels = scales.size(), rows = x.size() / channels;
  const ref::Values normed = ref::adain(x, scales, shifts, kEps);
  ref::Values want, bound;
  Floats magnitude(channels), deviation(channels);
  for (size_t c = 0; c < channels; ++c) {
    double mean = 0, sizes = 0, squares = 0;
    for (size_t i = c; i < x.size(); i += channels) mean += x[i], sizes += std::abs(x[i]);
    mean /= static_cast<double>(rows);
    for (size_t i = c; i < x.size(); i += channels) squares += (x[i] - mean) * (x[i] - mean);
    magnitude[c] = static_cast<float>(sizes / static_cast<double>(rows));
    deviation[c] = static_cast<float>(std::sqrt(squares / static_cast<double>(rows) + kEps));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % channels;
    const double a = after == After::snake ? alpha[c] : 0, z = normed[i];
    want.push_back(activated(z, after, a));
    const double error =
        error_of_norm(x[i], z, (1 + scales[c]) / deviation[c], shifts[c], magnitude[c], deviation[c]);
    bound.push_back(error_of_activation(z, want.back(), error, after, a));
  }
  expect_close(got, want, bound);
}

}  // namespace shoal::ops::segment_testing
