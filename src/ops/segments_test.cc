#include "ops/segments.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/error.h"

namespace shoal::ops {
namespace {

using Frames = std::vector<int32_t>;

void check(const Frames& starts, const Frames& frames, int64_t total, int64_t rate = 1, int64_t extra = 0) {
  check_segments("test", {.starts = starts, .frames = frames, .total = total, .rate = rate, .extra = extra});
}

TEST(Segments, RatesMultiplyRowsAndEverySegmentGetsTheExtraRows) {
  const Frames starts = {2, 9}, frames = {4, 3};
  const Segments one{.starts = starts, .frames = frames, .total = 14};
  EXPECT_EQ(one.count(), 2);
  EXPECT_EQ(one.begin(1), 9);
  EXPECT_EQ(one.rows(1), 3);
  EXPECT_EQ(one.total_rows(), 14);
  const Segments more = one.at(120, 1);
  EXPECT_EQ(more.begin(1), 1080);
  EXPECT_EQ(more.rows(0), 481);
  EXPECT_EQ(more.total_rows(), 1680);
  EXPECT_EQ(more.at(1).rows(0), 4);  // extra is not carried on
}

TEST(Segments, ValidSegmentsPass) {
  EXPECT_NO_THROW(check({}, {}, 0));
  EXPECT_NO_THROW(check({}, {}, 5));
  EXPECT_NO_THROW(check({0}, {5}, 5));
  EXPECT_NO_THROW(check({0, 5}, {5, 1}, 6));  // side by side
  EXPECT_NO_THROW(check({1, 8}, {5, 1}, 20, 120, 1));
  EXPECT_NO_THROW(check({0}, {0x7fffffff}, int64_t{1} << 40, 300));  // rows beyond 32 bits
}

TEST(Segments, OverlappingAndOversizedSegmentsAreRefused) {
  EXPECT_THROW(check({0, 5}, {5}, 20), Error);
  EXPECT_THROW(check({0}, {5, 5}, 20), Error);
  EXPECT_THROW(check({0}, {0}, 20), Error);
  EXPECT_THROW(check({0, 9}, {5, -1}, 20), Error);
  EXPECT_THROW(check({-1}, {5}, 20), Error);
  EXPECT_THROW(check({0, 4}, {5, 5}, 20), Error);
  EXPECT_THROW(check({9, 0}, {5, 5}, 20), Error);
  EXPECT_THROW(check({0}, {21}, 20), Error);
  EXPECT_THROW(check({0, 5}, {5, 1}, 9, 2, 1), Error);  // the extra row of the first is the second's
  EXPECT_THROW(check({0}, {5}, 5, 2, 1), Error);        // the extra row has no room
  EXPECT_THROW(check({0}, {5}, 5, 0), Error);
  EXPECT_THROW(check({0}, {5}, 5, 1, -1), Error);
}

TEST(Segments, TablesHaveTheShapeThatKernelsRead) {
  const Frames starts = {0, 6}, frames = {5, 5};
  int32_t table[6] = {0, 6, 5, 5};
  Segments segments{.starts = starts, .frames = frames, .total = 11};
  segments.tables = TensorView::of(table, DType::i32, {2, 2});
  EXPECT_NO_THROW(check_segments("test", segments));
  segments.tables = TensorView::of(table, DType::i32, {2, 3});
  EXPECT_THROW(check_segments("test", segments), Error);
}

}  // namespace
}  // namespace shoal::ops
