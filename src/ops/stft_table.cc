#include "ops/stft_table.h"

#include <cmath>
#include <numbers>

namespace shoal::ops {
namespace {

// cos(2 pi i / points), exactly 0, 1 and -1 where it is.
double cosine(int64_t i, int64_t points) {
  i = std::abs(i) % points;
  if (2 * i > points) i = points - i;
  if (4 * i == points) return 0;
  if (4 * i > points) return -cosine(points - 2 * i, 2 * points);  // pi - x
  return std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points));
}
double sine(int64_t i, int64_t points) { return cosine(4 * i - points, 4 * points); }

}  // namespace

double stft_window(int64_t n, int64_t points) { return 0.5 - 0.5 * cosine(n, points); }

void fill_stft_tables(const ShortStft& stft, bool inverse, std::span<float> cosines, std::span<float> sines) {
  const int64_t half = stft.points / 2;
  for (int64_t k = 0; k < stft.bins(); ++k) {
    const double factor =
        inverse ? (k == 0 || k == half ? 1.0 : 2.0) / static_cast<double>(stft.points) : 1.0;
    for (int64_t n = 1; n <= half; ++n) {
      const double scale = stft_window(n, stft.points) * factor;
      const auto at = static_cast<size_t>(k * half + n - 1);
      cosines[at] = static_cast<float>(scale * cosine(k * n, stft.points));
      sines[at] = static_cast<float>(scale * sine(k * n, stft.points));
    }
  }
}

}  // namespace shoal::ops
