// Percentiles of measured values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::bench {

// The value at rank ceil(share * n) of n sorted values (nearest rank, so always a measured value); 0 without
// values. share: 0 to 1.
double percentile(std::span<const double> sorted, double share);

struct Percentiles {
  int64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

// Values in bounded memory: all of the first `most_kept`, beyond that a uniform sample of this size (Vitter's
// algorithm R, with its own random numbers, so equal values give equal percentiles). Count, mean and max are
// exact.
class Samples {
 public:
  explicit Samples(size_t most_kept = size_t{1} << 18) : most_kept_(most_kept) {}
  void add(double value);
  Percentiles percentiles() const;

 private:
  size_t most_kept_;
  std::vector<double> kept_;
  int64_t count_ = 0;
  double sum_ = 0, max_ = 0;
};

}  // namespace shoal::bench
