#include "bench/measure/table.h"

#include <gtest/gtest.h>

namespace shoal::bench {
namespace {

TEST(Table, ColumnsAreAligned) {
  EXPECT_EQ(aligned({{"a", "bb", "c"}, {"long", "1", "22"}}),
            "a     bb   c\n"
            "long   1  22\n");
}

}  // namespace
}  // namespace shoal::bench
