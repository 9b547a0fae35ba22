#include "settings/value.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal::settings {
namespace {

TEST(ParseValue, ReadsTheWholeTextOrNothing) {
  EXPECT_EQ(parse_value(Type::integer, "8"), Value(int64_t{8}));
  EXPECT_EQ(parse_value(Type::integer, "-1"), Value(int64_t{-1}));
  EXPECT_EQ(parse_value(Type::number, "0.5"), Value(0.5));
  EXPECT_EQ(parse_value(Type::number, "20"), Value(20.0));
  EXPECT_EQ(parse_value(Type::number, "1e-3"), Value(0.001));
  EXPECT_EQ(parse_value(Type::text, " 8x "), Value(" 8x "));
  for (const char* bad :
       {"8x", "", " 8", "8 ", "+8", "8.0", "1e3", "0x10", "8,000", "99999999999999999999", "eight"})
    EXPECT_THROW(parse_value(Type::integer, bad), Error) << bad;
  for (const char* bad : {"0.5x", "", " 0.5", "0,5", "0x1p3", "1e999", "."})
    EXPECT_THROW(parse_value(Type::number, bad), Error) << bad;
}

TEST(ParseValue, BooleansHaveFourSpellingsEach) {
  for (const char* yes : {"true", "1", "on", "yes", "True", "TRUE", "On"})
    EXPECT_EQ(parse_value(Type::boolean, yes), Value(true)) << yes;
  for (const char* no : {"false", "0", "off", "no", "False", "NO"})
    EXPECT_EQ(parse_value(Type::boolean, no), Value(false)) << no;
  for (const char* bad : {"", "2", "t", "y", "enabled", "true ", "tru", "truee"})
    EXPECT_THROW(parse_value(Type::boolean, bad), Error) << bad;
}

TEST(ParseValue, SaysWhatItExpectedAndFound) {
  try {
    parse_value(Type::integer, "8x\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "expected an integer, got \"8x?\"");
  }
}

TEST(ToToml, EscapesWhatTomlMustNotHold) {
  EXPECT_EQ(to_toml(std::string("a\"b\\c\n\x7f d\xc3\xa9")), "\"a\\\"b\\\\c\\u000A\\u007F d\xc3\xa9\"");
  EXPECT_EQ(to_toml(20.0), "20.0");
  EXPECT_EQ(to_toml(0.1), "0.1");
  EXPECT_EQ(to_toml(1e-7), "1e-07");
  EXPECT_EQ(to_toml(int64_t{-1}), "-1");
  EXPECT_EQ(to_toml(true), "true");
  EXPECT_THROW(to_toml(std::string("\xff")), Error);
}

}  // namespace
}  // namespace shoal::settings
