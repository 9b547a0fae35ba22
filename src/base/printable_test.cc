#include "base/printable.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(IsUtf8, RefusesEveryKindOfInvalidSequence) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x90\x9f\xf4\x8f\xbf\xbf"));
  // Alone, cut off, overlong (2, 3, 4 bytes), surrogate, beyond U+10FFFF, a continuation that is none.
  for (const char* bad :
       {"\x80", "\xc3", "\xe4\xb8", "\xf0\x9f\x90", "\xc0\xaf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3x", "\xff"})
    EXPECT_FALSE(is_utf8(bad)) << printable(bad);
}

TEST(Printable, IsOneShortLine) {
  EXPECT_EQ(printable("a\nb\x1b[31m\xff\xc3\xa9"), "a?b?[31m?\xc3\xa9");
  EXPECT_EQ(printable(std::string(200, 'x'), 5), "xxxxx...");
}

}  // namespace
}  // namespace shoal
