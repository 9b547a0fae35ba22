#include "text/utf8.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/characters.h"
#include "text/nfc.h"

namespace shoal::text {
namespace {

constexpr size_t kValid = std::string_view::npos;

TEST(Utf8, EveryCodePointRoundTrips) {
  std::string all;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const size_t at = all.size();
    append_utf8(all, c);
    ASSERT_EQ(code_point_at(all, at), c);
    ASSERT_EQ(character_bytes(all[at]), all.size() - at);
    ASSERT_EQ(previous_character(all, all.size()), at);
  }
  EXPECT_EQ(find_invalid_utf8(all), kValid);
  EXPECT_EQ(count_characters(all), 0x110000 - 0x800);
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8(""), kValid);
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(find_invalid_utf8("abcdefghijk\x80"), 11u);
  EXPECT_EQ(find_invalid_utf8("\xc3"), 0u);              // cut off
  EXPECT_EQ(find_invalid_utf8("a\xe4\xbd"), 1u);         // cut off
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0u);          // overlong
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\x80"), 0u);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xf0\x80\x80\x80"), 0u);  // overlong
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0u);      // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);  // over U+10FFFF
  EXPECT_EQ(find_invalid_utf8("\xf8\x88\x80\x80\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xc3(abc"), 0u);
}

TEST(Characters, WhiteSpaceIsThatOfUnicode) {
  // PropList.txt, White_Space.
  const std::u32string expected =
      U"\t\n\v\f\r \u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028"
      U"\u2029\u202F\u205F\u3000";
  std::u32string found;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (is_white_space(c)) found += c;
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(strip_white_space(" \u3000 a b\u00A0\n"), "a b");
  EXPECT_EQ(strip_white_space(" \u3000"), "");
}

TEST(Nfc, ComposesAndReordersAccents) {
  EXPECT_EQ(to_nfc("plain"), "plain");
  EXPECT_EQ(to_nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(to_nfc("a\u0301\u0323"), "\u1EA1\u0301");   // marks are ordered by class first
  EXPECT_EQ(to_nfc("\u1112\u1161\u11AB"), "\uD55C");    // Hangul
  EXPECT_EQ(to_nfc("\u212B"), "\u00C5");                // singleton
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093C");          // composition exclusion
  EXPECT_EQ(to_nfc("\uFB01 \u00BD"), "\uFB01 \u00BD");  // compatibility forms stay
  EXPECT_EQ(to_nfc("q\u0323\u0307"), to_nfc("q\u0307\u0323"));
}

TEST(Nfc, AMegabyteOfAlternatingAccentsIsQuick) {
  std::string text = "a";
  for (int i = 0; i < 250'000; ++i) text += "\u0301\u0323";
  const std::string composed = to_nfc(text);  // quadratic ordering would take minutes: the test's time limit
  EXPECT_EQ(composed.substr(0, 5), "\u1EA1\u0323");
  EXPECT_EQ(composed.size(), text.size() - 1 - 2 + 3 - 0);
}

}  // namespace
}  // namespace shoal::text
