#include "base/nearest.h"

#include <gtest/gtest.h>
#include <vector>

namespace shoal {
namespace {

TEST(EditDistance, CountsEachKindOfEdit) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("threads", "thread"), 1);
  EXPECT_EQ(edit_distance("threads", "thraeds"), 1);
  EXPECT_EQ(edit_distance("threads", "breads"), 2);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearestName, IgnoresThePrefix) {
  constexpr std::string_view kPrefixes[] = {"SHOAL_", "S1_MINI_"};
  const std::vector<std::string> names = {"SHOAL_MODEL", "SHOAL_THREADS", "S1_MINI_DEVICE"};
  EXPECT_EQ(nearest_name("SHOAL_THRAEDS", names, kPrefixes), "SHOAL_THREADS");
  EXPECT_EQ(nearest_name("S1_MINI_THREADS", names, kPrefixes), "SHOAL_THREADS");
  EXPECT_EQ(nearest_name("SHOAL_DEVICES", names, kPrefixes), "S1_MINI_DEVICE");
  EXPECT_EQ(nearest_name("SHOAL_" + std::string(100000, 'M'), names, kPrefixes).substr(0, 2), "SH");
}

TEST(NearestName, ReturnsTheFirstOfEqualCandidates) {
  const std::vector<std::string> names = {"top_k", "top_p"};
  EXPECT_EQ(nearest_name("top_q", names), "top_k");
  EXPECT_EQ(nearest_name("topp", names), "top_p");
}

}  // namespace
}  // namespace shoal
