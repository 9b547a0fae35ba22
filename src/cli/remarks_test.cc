#include "cli/remarks.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace shoal::cli {
namespace {

TEST(Remarks, AreOneLineWhateverTheyContain) {
  EXPECT_EQ(remark_line(LogLevel::warning, "ann: no clip"), "shoal: warning: ann: no clip");
  EXPECT_EQ(remark_line(LogLevel::error, "a\nb\033[2Jc\x7f"), "shoal: error: a b [2Jc ");
  EXPECT_EQ(remark_line(LogLevel::info, "Zo\xc3\xab"), "shoal: info: Zo\xc3\xab");
}

TEST(Remarks, TheEnvironmentChoosesTheLevel) {
  const auto wanted = [](const char* value) {
    setenv("SHOAL_LOG_LEVEL", value, 1);
    return wanted_remarks();
  };
  EXPECT_EQ(wanted("debug"), LogLevel::debug);
  EXPECT_EQ(wanted("info"), LogLevel::info);
  EXPECT_EQ(wanted("error"), LogLevel::error);
  EXPECT_EQ(wanted(""), LogLevel::warning);
  for (const char* other : {"Info", "warn", "2", " "}) EXPECT_THROW(wanted(other), Error) << other;
  unsetenv("SHOAL_LOG_LEVEL");
  EXPECT_EQ(wanted_remarks(), LogLevel::warning);
}

}  // namespace
}  // namespace shoal::cli
