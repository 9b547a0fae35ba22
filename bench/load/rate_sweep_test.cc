#include "bench/load/rate_sweep.h"

#include <gtest/gtest.h>
#include <vector>

namespace shoal::load {
namespace {

// The rates that are tried at a server which keeps up with `limit` requests a second.
std::vector<double> rates_tried(RateSweep& sweep, double limit) {
  std::vector<double> rates;
  while (const auto rate = sweep.next()) {
    rates.push_back(*rate);
    sweep.add(*rate <= limit);
  }
  return rates;
}

TEST(RateSweep, DoublesAndThenHalvesTheDistance) {
  RateSweep sweep(1);
  EXPECT_EQ(rates_tried(sweep, 11), (std::vector<double>{1, 2, 4, 8, 16, 12, 10, 11}));
  EXPECT_EQ(sweep.capacity_per_s(), 11);
  EXPECT_TRUE(sweep.has_limit());
}

TEST(RateSweep, GoesDownFromAFirstRateThatIsTooHigh) {
  RateSweep sweep(8);
  EXPECT_EQ(rates_tried(sweep, 1), (std::vector<double>{8, 4, 2, 1}));
  EXPECT_EQ(sweep.capacity_per_s(), 1);
  RateSweep hopeless(8);
  rates_tried(hopeless, 0);
  EXPECT_EQ(hopeless.capacity_per_s(), 0);
}

TEST(RateSweep, EndsAtAServerWithoutALimit) {
  RateSweep sweep(1);
  EXPECT_EQ(rates_tried(sweep, 1e9).back(), 4096);
  EXPECT_FALSE(sweep.has_limit());
}

}  // namespace
}  // namespace shoal::load
