// The official code's values on the fixtures in the tree.
#include <gtest/gtest.h>
#include <string>

#include "tests/parity/lm_parity.h"

namespace shoal::parity {
namespace {

class LmParity : public ::testing::TestWithParam<const char*> {
 protected:
  std::string dir() const { return std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/" + GetParam(); }
};

TEST_P(LmParity, Values) { check_lm_values(dir()); }
TEST_P(LmParity, GreedyStreams) { check_lm_streams(dir()); }
TEST_P(LmParity, Bf16) { check_lm_bf16(dir()); }

INSTANTIATE_TEST_SUITE_P(Fixtures, LmParity, ::testing::Values("set_a", "set_s2"),
                         [](const auto& suite) { return std::string(suite.param); });

}  // namespace
}  // namespace shoal::parity
