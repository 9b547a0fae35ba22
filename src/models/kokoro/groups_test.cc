#include "models/kokoro/groups.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <vector>

namespace shoal::kokoro {
namespace {

using Sizes = std::vector<size_t>;

// How many utterances each group has.
Sizes groups_of(const std::vector<int32_t>& frames, int64_t most) {
  Sizes sizes;
  for (size_t first = 0; first < frames.size();) {
    const size_t end = end_of_group(frames, first, most);
    sizes.push_back(end - first);
    first = end;
  }
  return sizes;
}

TEST(Groups, HaveAboutEqualSize) {
  EXPECT_EQ(groups_of(std::vector<int32_t>(16, 321), 1680), (Sizes{4, 4, 4, 4}));
  EXPECT_EQ(groups_of(std::vector<int32_t>(6, 560), 1680), (Sizes{3, 3}));
  EXPECT_EQ(groups_of({100, 1500, 100, 1500}, 1680), (Sizes{2, 2}));
  EXPECT_EQ(groups_of({10}, 1680), Sizes{1});
}

TEST(Groups, ALongUtteranceGoesAlone) {
  EXPECT_EQ(groups_of({5000, 100, 200}, 1680), (Sizes{1, 2}));
  EXPECT_EQ(groups_of({100, 5000, 200}, 1680), (Sizes{1, 1, 1}));
}

TEST(Groups, CoverEveryUtteranceOnceWithinTheFrameLimit) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int32_t> frames(1 + random() % 40);
    for (int32_t& one : frames) one = 1 + static_cast<int32_t>(random() % 700);
    size_t first = 0;
    for (const size_t size : groups_of(frames, 1000)) {
      ASSERT_GE(size, 1u);
      const auto begin = frames.begin() + static_cast<ptrdiff_t>(first);
      EXPECT_LE(std::accumulate(begin, begin + static_cast<ptrdiff_t>(size), 0), 1000);
      first += size;
    }
    EXPECT_EQ(first, frames.size());
  }
}

}  // namespace
}  // namespace shoal::kokoro
