#include "settings/nearest.h"

#include <gtest/gtest.h>
#include <vector>

namespace shoal::settings {
namespace {

TEST(EditDistance, CountsEachKindOfSlip) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("threads", "thread"), 1);
  EXPECT_EQ(edit_distance("threads", "thraeds"), 1);
  EXPECT_EQ(edit_distance("threads", "breads"), 2);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearestName, LooksBehindThePrefix) {
  const std::vector<std::string> names = {"SHOAL_MODEL", "SHOAL_THREADS", "S1_MINI_DEVICE"};
  EXPECT_EQ(nearest_name("SHOAL_THRAEDS", names), "SHOAL_THREADS");
  EXPECT_EQ(nearest_name("S1_MINI_THREADS", names), "SHOAL_THREADS");
  EXPECT_EQ(nearest_name("SHOAL_DEVICES", names), "S1_MINI_DEVICE");
  EXPECT_EQ(nearest_name("SHOAL_" + std::string(100000, 'M'), names).substr(0, 2), "SH");
}

}  // namespace
}  // namespace shoal::settings
