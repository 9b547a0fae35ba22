#include "bench/measure/samples.h"

#include <algorithm>
#include <cmath>

#include "bench/measure/draws.h"

namespace shoal::bench {

double percentile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return 0;
  // 0.95 * 20 may come out a hair above 19.
  const double rank = std::ceil(share * static_cast<double>(sorted.size()) - 1e-9);
  const auto last = static_cast<double>(sorted.size());
  return sorted[static_cast<size_t>(std::clamp(rank, 1.0, last)) - 1];
}

void Samples::add(double value) {
  max_ = count_ == 0 ? value : std::max(max_, value);
  sum_ += value;
  ++count_;
  if (kept_.size() < most_kept_) {
    kept_.push_back(value);
    return;
  }
  const uint64_t place =
      draw_below(static_cast<uint64_t>(count_), 0, static_cast<uint64_t>(count_), Draw::sample);
  if (place < most_kept_) kept_[place] = value;
}

Percentiles Samples::percentiles() const {
  std::vector<double> sorted = kept_;
  std::sort(sorted.begin(), sorted.end());
  return {.count = count_,
          .mean = count_ > 0 ? sum_ / static_cast<double>(count_) : 0,
          .p50 = percentile(sorted, 0.5),
          .p90 = percentile(sorted, 0.9),
          .p95 = percentile(sorted, 0.95),
          .p99 = percentile(sorted, 0.99),
          .max = max_};
}

}  // namespace shoal::bench
