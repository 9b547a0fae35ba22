#include "base/voice_name.h"

#include <gtest/gtest.h>
#include <string>

namespace shoal {
namespace {

TEST(VoiceName, IsASinglePathComponent) {
  for (const char* name : {"af_heart", "a", "A-b 9", "-"}) EXPECT_TRUE(is_voice_name(name)) << name;
  for (const char* name : {"", "a.b", "a/b", "a+b", "a(b", "\xc3\xa9", "a\n"})
    EXPECT_FALSE(is_voice_name(name)) << name;
  EXPECT_TRUE(is_voice_name(std::string(255, 'a')));
  EXPECT_FALSE(is_voice_name(std::string(256, 'a')));
}

TEST(VoiceName, TheModelsOwnVoiceMatchesInAnyCase) {
  for (const char* name : {"default", "Default", "DEFAULT", "built-in", "Built-In"})
    EXPECT_TRUE(is_own_voice_name(name)) << name;
  for (const char* name : {"", "defaul", "default ", "defaults", "builtin"})
    EXPECT_FALSE(is_own_voice_name(name)) << name;
}

}  // namespace
}  // namespace shoal
