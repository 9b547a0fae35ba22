#include "bench/engine/listener.h"

#include <gtest/gtest.h>

namespace shoal::bench {
namespace {

TEST(Listener, PiecesInTimePlayWithoutAGap) {
  Listener listener(1000);  // a sample a millisecond
  listener.hear(5'000, 10);
  EXPECT_EQ(listener.runs_dry_at_us(), 15'000);
  listener.hear(5'000, 10);   // at once
  listener.hear(25'000, 10);  // at the last moment
  EXPECT_EQ(listener.runs_dry_at_us(), 35'000);
  EXPECT_EQ(listener.underruns(), 0);
  EXPECT_EQ(listener.dry_us(), 0);
  EXPECT_EQ(listener.samples(), 30);
}

TEST(Listener, StopsWhenEmptyAndContinuesWithTheNextPiece) {
  Listener listener(1000);
  listener.hear(0, 10);
  listener.hear(12'000, 10);  // 2 ms late: plays to 22 ms
  listener.hear(21'000, 10);  // in time for those who began again at 12 ms
  listener.hear(40'000, 10);  // 8 ms late
  EXPECT_EQ(listener.underruns(), 2);
  EXPECT_EQ(listener.dry_us(), 10'000);
  EXPECT_EQ(listener.runs_dry_at_us(), 50'000);
}

TEST(Listener, ManyOddPiecesDoNotDrift) {
  Listener listener(44'100);
  for (int i = 0; i < 44'100; ++i) listener.hear(0, 1);  // a sample is no whole number of microseconds
  EXPECT_EQ(listener.runs_dry_at_us(), 1'000'000);
  EXPECT_EQ(listener.underruns(), 0);
}

}  // namespace
}  // namespace shoal::bench
