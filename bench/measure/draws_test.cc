#include "bench/measure/draws.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

namespace shoal::bench {
namespace {

TEST(Draws, ArePureFunctionsOfEveryArgument) {
  EXPECT_EQ(draw_bits(1, 2, Draw::voice), draw_bits(1, 2, Draw::voice));
  const std::set<uint64_t> all = {draw_bits(1, 2, Draw::voice), draw_bits(2, 2, Draw::voice),
                                  draw_bits(1, 3, Draw::voice), draw_bits(1, 2, Draw::seed),
                                  draw_bits(1, 2 + (uint64_t{1} << 32), Draw::voice)};
  EXPECT_EQ(all.size(), 5u);
}

TEST(Draws, BelowCoversItsWholeRange) {
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 200; ++i) {
    const uint64_t drawn = draw_below(7, 3, i, Draw::frames);
    EXPECT_LT(drawn, 7u);
    seen.insert(drawn);
  }
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(draw_below(1, 3, 0, Draw::frames), 0u);
}

// Mean and variance of the gaps, and counts in windows, are those of a Poisson process. Bounds are five
// standard deviations of each estimate over n gaps: 1/sqrt(n) for the mean, sqrt(8/n) for the variance.
TEST(ArrivalGaps, HaveTheMeanAndVarianceOfAnExponential) {
  constexpr int kGaps = 20'000;
  for (const double rate : {0.5, 20.0, 3000.0}) {
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < kGaps; ++i) {
      const double gap = arrival_gap_s(rate, 11, i) * rate;
      ASSERT_GT(gap, 0);
      sum += gap;
      squares += gap * gap;
    }
    const double mean = sum / kGaps, variance = squares / kGaps - mean * mean;
    EXPECT_NEAR(mean, 1, 5 / std::sqrt(kGaps));
    EXPECT_NEAR(variance, 1, 5 * std::sqrt(8.0 / kGaps));
  }
}

TEST(ArrivalGaps, HaveTheTailOfAnExponential) {
  constexpr int kGaps = 20'000;
  int beyond = 0;
  for (uint64_t i = 0; i < kGaps; ++i) beyond += arrival_gap_s(1, 5, i) > 3;
  const double expected = std::exp(-3.0);
  EXPECT_NEAR(static_cast<double>(beyond) / kGaps, expected, 5 * std::sqrt(expected / kGaps));
}

TEST(ArrivalGaps, ScaleWithTheRateAndFollowTheSeed) {
  EXPECT_DOUBLE_EQ(arrival_gap_s(4, 1, 9), arrival_gap_s(1, 1, 9) / 4);
  EXPECT_NE(arrival_gap_s(1, 1, 9), arrival_gap_s(1, 2, 9));
}

}  // namespace
}  // namespace shoal::bench
