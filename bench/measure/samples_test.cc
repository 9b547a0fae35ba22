#include "bench/measure/samples.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace shoal::bench {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// Nearest rank by its definition: the smallest value that at least `share` of the values do not exceed.
double by_definition(const std::vector<double>& sorted, int percent) {
  for (size_t i = 0; i < sorted.size(); ++i) {
    if ((i + 1) * 100 >= static_cast<size_t>(percent) * sorted.size()) return sorted[i];
  }
  return sorted.back();
}

TEST(Percentile, IsTheNearestRank) {
  const std::vector<double> sorted = {15, 20, 35, 40, 50};
  EXPECT_EQ(percentile(sorted, 0.05), 15);
  EXPECT_EQ(percentile(sorted, 0.30), 20);
  EXPECT_EQ(percentile(sorted, 0.40), 20);
  EXPECT_EQ(percentile(sorted, 0.50), 35);
  EXPECT_EQ(percentile(sorted, 1.00), 50);
  EXPECT_EQ(percentile(sorted, 0), 15);
}

TEST(Percentile, AgreesWithItsDefinitionAtEverySize) {
  for (int n = 1; n <= 250; ++n) {
    const std::vector<double> sorted = one_to(n);
    for (const int percent : {1, 50, 90, 95, 99, 100})
      ASSERT_EQ(percentile(sorted, percent / 100.0), by_definition(sorted, percent)) << n << " " << percent;
  }
}

TEST(Percentile, IsAbsentWithoutSamples) {
  EXPECT_EQ(percentile({}, 0.5), 0);
  const Percentiles none = Samples().percentiles();
  EXPECT_EQ(none.count, 0);
  EXPECT_EQ(none.mean, 0);
  EXPECT_EQ(none.max, 0);
}

TEST(Samples, OrderDoesNotMatter) {
  Samples samples;
  for (int i = 100; i >= 1; --i) samples.add(i % 2 ? i : -i);
  const Percentiles p = samples.percentiles();
  EXPECT_EQ(p.count, 100);
  EXPECT_EQ(p.mean, -0.5);
  EXPECT_EQ(p.p50, -2);  // fifty negative ones, the largest -2
  EXPECT_EQ(p.p99, 97);
  EXPECT_EQ(p.max, 99);
}

TEST(Samples, BeyondTheirMemoryTheyStayRepresentativeWithExactExtremes) {
  constexpr int kValues = 200'000;
  constexpr size_t kKept = 4096;
  Samples samples(kKept);
  for (int i = 0; i < kValues; ++i) samples.add(i);  // rising, so keeping early or late ones would show
  const Percentiles p = samples.percentiles();
  EXPECT_EQ(p.count, kValues);
  EXPECT_EQ(p.max, kValues - 1);
  EXPECT_DOUBLE_EQ(p.mean, (kValues - 1) / 2.0);
  // A rank among m fair draws has standard deviation sqrt(share (1 - share) / m) of all; five of them.
  const auto bound = [&](double share) { return 5 * std::sqrt(share * (1 - share) / kKept) * kValues; };
  EXPECT_NEAR(p.p50, 0.5 * kValues, bound(0.5));
  EXPECT_NEAR(p.p90, 0.9 * kValues, bound(0.9));
  EXPECT_NEAR(p.p99, 0.99 * kValues, bound(0.99));
}

}  // namespace
}  // namespace shoal::bench
