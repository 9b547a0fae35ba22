#include "settings/toml_file.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder_testing.h"

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

TEST(ParseToml, ListsKeysByLine) {
  const auto entries = parse_toml("# a comment\nz = 1\r\n\na = \"x\" # \nb=0.5\n\tc=true", "t");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].key, "z");
  EXPECT_EQ(entries[0].line, 2);
  EXPECT_EQ(entries[0].value, Value(int64_t{1}));
  EXPECT_EQ(entries[1].value, Value("x"));
  EXPECT_EQ(entries[1].line, 4);
  EXPECT_EQ(entries[2].value, Value(0.5));
  EXPECT_EQ(entries[3].value, Value(true));
  EXPECT_EQ(entries[3].line, 6);
  for (const char* nothing : {"", "\n", "\n\n", "# x", "\xef\xbb\xbf"})
    EXPECT_TRUE(parse_toml(nothing, "t").empty());
  EXPECT_EQ(parse_toml("\xef\xbb\xbf"
                       "a = 1\r\n",
                       "t")
                .size(),
            1u);
}

TEST(ParseToml, ErrorsGiveTheLine) {
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
  for (const std::string part : {"a = [", "a={", "a.", "[a.", "[", "[["}) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += part;
    EXPECT_THROW(parse_toml(text, "shoal.toml"), Error) << part;
  }
}

TEST(ParseToml, NamesBothPlacesOfAKey) {
  try {
    parse_toml("a = 1\n\n'a' = 1\n", "t");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "t:3: not TOML: \"a\" stands in line 1 too");
  }
}

TEST(ParseToml, SectionsOfWorkers) {
  const auto entries =
      parse_toml("a = 1\n[workers.w1]\na = 2\n \t[workers.the_2-nd] # b\na = 3\nb = 4\n", "t");
  ASSERT_EQ(entries.size(), 4u);
  std::string workers;
  for (const FileEntry& entry : entries) workers += entry.worker + " ";
  EXPECT_EQ(workers, " w1 the_2-nd the_2-nd ");
  expect_corrupt("[workers.w1]\na = 1\n[workers.w2]\n[workers.w1]\n",
                 "shoal.toml:4: not TOML: \"workers.w1\" stands");
  expect_corrupt("[workers.w1]\na = 1\na = 1\n", "shoal.toml:3: not TOML: \"a\" stands in line 2");
  for (const char* other :
       {"[workers]", "[workers.]", "[workers.w1", "[workers.w1] x", "[workers.a.b]", "[worker.w1]"})
    EXPECT_THROW(parse_toml(other, "t"), Error) << other;
}

TEST(ParseToml, AMegabyteOfSettingsIsReadInOnePass) {
  std::string text;
  for (int i = 0; text.size() < 1'000'000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  EXPECT_GT(parse_toml(text, "t").size(), 70'000u);
}

class ReadToml : public testing::Test {
 protected:
  void expect_error(const std::string& path, ErrorCode code) const {
    try {
      read_toml(path);
      ADD_FAILURE() << path << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.message(), HasSubstr(path));
    }
  }

  const TemporaryFolder dir_;
};

TEST_F(ReadToml, NamesTheFileThatIsMissingOrTooLarge) {
  expect_error(dir_.path("missing.toml"), ErrorCode::not_found);
  const std::string path = dir_.path("big.toml");
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  expect_error(path, ErrorCode::too_large);
  std::ofstream(path, std::ios::trunc) << "threads = \"x";
  expect_error(path, ErrorCode::corrupt_file);
  std::ofstream(path, std::ios::trunc) << "threads = 2";
  EXPECT_EQ(read_toml(path).at(0).value, Value(int64_t{2}));
}

}  // namespace
}  // namespace shoal::settings
