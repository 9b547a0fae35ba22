#include "settings/toml_file.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal::settings {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

void expect_corrupt(std::string_view text, const std::string& start) {
  SCOPED_TRACE(printable(text));
  try {
    parse_toml(text, "shoal.toml");
    ADD_FAILURE() << "was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
    EXPECT_THAT(error.message(), StartsWith(start));
    EXPECT_TRUE(is_utf8(error.message()));
    EXPECT_LT(error.message().size(), 500u);
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
  }
}

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

TEST(ParseToml, ListsTheTopLevelByLine) {
  const auto entries =
      parse_toml("# a comment. with dots...\nz = 1\n\na = \"x\" # \nb=0.5\nc=true\nd=[1]\n[e]\nf=1\n", "t");
  ASSERT_EQ(entries.size(), 6u);
  EXPECT_EQ(entries[0].key, "z");
  EXPECT_EQ(entries[0].line, 2);
  EXPECT_EQ(entries[0].value, Value(int64_t{1}));
  EXPECT_EQ(entries[1].value, Value("x"));
  EXPECT_EQ(entries[1].line, 4);
  EXPECT_EQ(entries[2].value, Value(0.5));
  EXPECT_EQ(entries[3].value, Value(true));
  EXPECT_EQ(entries[4].value, std::nullopt);
  EXPECT_EQ(entries[4].found, "an array");
  EXPECT_EQ(entries[5].found, "a table");
  EXPECT_EQ(entries[5].line, 8);
  EXPECT_TRUE(parse_toml("", "t").empty());
  EXPECT_EQ(parse_toml("\xef\xbb\xbf"
                       "a = 1\r\n",
                       "t")
                .size(),
            1u);
}

TEST(ParseToml, SaysWhereItIsNotToml) {
  expect_corrupt("a = 1\nb = \nc = 2\n", "shoal.toml:2: ");
  expect_corrupt("a = 1\na = 2\n", "shoal.toml:2: ");
  expect_corrupt("a = \"x", "shoal.toml:1: ");
  expect_corrupt("just words", "shoal.toml:1: ");
  expect_corrupt("a = 99999999999999999999", "shoal.toml:1: ");
}

TEST(ParseToml, SurvivesHostileBytes) {
  expect_corrupt(std::string_view("a = 1\n\0b = 2\n", 13), "shoal.toml:2: ");
  expect_corrupt(std::string_view("\0\0\0\0", 4), "shoal.toml:1: ");
  expect_corrupt("a = \"\xff\xfe\"\n", "shoal.toml:1: ");
  expect_corrupt("a = 1\n\xc3", "shoal.toml:");
  expect_corrupt("a = \"\xed\xa0\x80\"", "shoal.toml:1: ");
  expect_corrupt("a = \"\x1b[31m\"", "shoal.toml:1: ");
  expect_corrupt("a\n= 1", "shoal.toml:1: ");
  expect_corrupt(std::string(1 << 20, 'a'), "shoal.toml:1: ");
}

TEST(ParseToml, SurvivesDeepNesting) {
  constexpr int kDeep = 500'000;
  expect_corrupt("a = " + std::string(kDeep, '['), "shoal.toml:1: ");
  expect_corrupt(repeated("a={", kDeep / 2), "shoal.toml:1: ");
  // Each dot is a table within a table, whose destructors call each other.
  expect_corrupt("a" + repeated(".a", kDeep) + " = 1\n", "shoal.toml: ");
  expect_corrupt("[a" + repeated(".a", kDeep) + "]\n", "shoal.toml: ");
  expect_corrupt(repeated("[a" + repeated(".a", 100) + "]\n", 1000), "shoal.toml: ");
  // At the limit it is only a table that no setting wants.
  EXPECT_EQ(parse_toml("a" + repeated(".a", 4096) + " = 1\n", "t").size(), 1u);
}

class ReadToml : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/shoal_toml_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void expect_error(const std::string& path, ErrorCode code) const {
    try {
      read_toml(path);
      ADD_FAILURE() << path << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.message(), HasSubstr(path));
    }
  }

  std::string dir_;
};

TEST_F(ReadToml, NamesTheFileThatIsMissingOrTooLarge) {
  expect_error(dir_ + "/missing.toml", ErrorCode::not_found);
  const std::string path = dir_ + "/big.toml";
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  expect_error(path, ErrorCode::too_large);
  std::ofstream(path, std::ios::trunc) << "threads = [";
  expect_error(path, ErrorCode::corrupt_file);
  std::ofstream(path, std::ios::trunc) << "threads = 2";
  EXPECT_EQ(read_toml(path).at(0).value, Value(int64_t{2}));
}

}  // namespace
}  // namespace shoal::settings
