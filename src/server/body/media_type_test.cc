#include "server/body/media_type.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

TEST(Lists, MatchesWholeNamesWithTheirWeight) {
  EXPECT_TRUE(lists("application/json", "application/json"));
  EXPECT_TRUE(lists("text/html, APPLICATION/JSON;q=0.5;charset=utf-8 ,*/*", "application/json"));
  EXPECT_TRUE(lists("gzip;q=0.001", "gzip"));
  for (const char* not_named : {"", "application/json-seq", "x-application/json", "application/json;q=0",
                                "application/json; q=0.000", "*/*", "text/html;a=\"application/json\""})
    EXPECT_FALSE(lists(not_named, "application/json")) << not_named;
}

TEST(AnyPart, TriesTrimmedPartsUntilOneMatches) {
  std::string seen;
  EXPECT_FALSE(any_part(" a,,\tb c ", [&](std::string_view part) {
    seen.append(part).append("|");
    return false;
  }));
  EXPECT_EQ(seen, "a||b c|");
  int calls = 0;
  EXPECT_TRUE(any_part("a,b", [&](std::string_view) { return ++calls == 1; }));
  EXPECT_EQ(calls, 1);
}

TEST(IsToken, AcceptsTheCharactersOfAFieldName) {
  EXPECT_TRUE(is_token("x-stainless-os"));
  for (const char* none : {"", "a b", "a:b", "a/b", "a\r\nb", "\xc3\xa4"})
    EXPECT_FALSE(is_token(none)) << none;
}

}  // namespace
}  // namespace shoal::server
