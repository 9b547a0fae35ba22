#include "server/access/keys.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/log.h"
#include "base/temporary_folder_testing.h"

namespace shoal::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;

class Keys : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel, std::string_view message) { remarks_.emplace_back(message); });
  }
  void TearDown() override { set_log_sink({}); }

  std::string path() const { return dir_.path("keys"); }
  std::string file(const std::string& text, int mode = 0600) const {
    std::ofstream(path(), std::ios::binary) << text;
    std::filesystem::permissions(path(), static_cast<std::filesystem::perms>(mode));
    return path();
  }
  void expect_refused(const std::string& text, const std::string& place, const std::string& key = "") const {
    try {
      const ApiKeys keys(key, file(text));
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_TRUE(is_callers_fault(error.code()));
      EXPECT_THAT(error.message(), AllOf(HasSubstr(path() + place), Not(HasSubstr("hush"))));
    }
  }

  const TemporaryFolder dir_;
  std::vector<std::string> remarks_;
};

TEST_F(Keys, WithoutKeysNoClientIsKnown) {
  const ApiKeys none;
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(ApiKeys("", "").empty());
  for (const char* header : {"", "Bearer", "Bearer ", "Bearer x"})
    EXPECT_EQ(none.client_of(header), std::nullopt);
}

TEST_F(Keys, LimitsStandBehindTheKey) {
  const ApiKeys keys("", file("ann:one requests_per_minute=60\t characters_per_day=100000 \nbob:two\n"
                              "three characters_per_minute=5\r\n"));
  EXPECT_EQ(keys.client_of("Bearer one"), "ann");
  const std::map<std::string, KeyLimits> expected = {{"ann", {60, 0, 100000}}, {"key-3", {0, 5, 0}}};
  EXPECT_EQ(keys.limits(), expected);
}

TEST_F(Keys, LimitsThatAreNoneAreRefused) {
  for (const char* limits :
       {"hush", "hush=1", "requests_per_minute", "requests_per_minute=", "requests_per_minute=0",
        "requests_per_minute=-1", "requests_per_minute=1.5", "requests_per_minute=99999999999999999999",
        "requests_per_minute= 5", "requests_per_minute=5 requests_per_minute=6", "=", "=5"})
    expect_refused(std::string("ann:one ") + limits, ":1: expected");
}

TEST_F(Keys, EachKeyHasItsName) {
  const ApiKeys keys("sk-one",
                     file("# the web site\nsite:sk-two\r\n\n  sk-three\t\nbatch.jobs_1:a:b:c\n#x:y"));
  EXPECT_FALSE(keys.empty());
  EXPECT_THAT(keys.client_of("Bearer sk-one"), Optional(std::string("key-1")));
  EXPECT_THAT(keys.client_of("Bearer sk-two"), Optional(std::string("site")));
  EXPECT_THAT(keys.client_of("Bearer sk-three"), Optional(std::string("key-3")));
  EXPECT_THAT(keys.client_of("Bearer a:b:c"), Optional(std::string("batch.jobs_1")));
  EXPECT_EQ(keys.client_of("Bearer y"), std::nullopt);
  EXPECT_EQ(keys.client_of("Bearer #x:y"), std::nullopt);
  EXPECT_THAT(remarks_, IsEmpty());
}

TEST_F(Keys, OnlyAWholeKeyBehindTheSchemeCounts) {
  const ApiKeys keys("sk-one", "");
  for (const char* good : {"Bearer sk-one", "bearer sk-one", "BEARER   sk-one", "Bearer sk-one "})
    EXPECT_TRUE(keys.client_of(good)) << good;
  for (const char* bad : {"", "sk-one", "Bearer", "Bearer ", "Bearersk-one", "Bearer\tsk-one", "Basic sk-one",
                          "Bearer sk-on", "Bearer sk-onee", "Bearer SK-ONE", "Bearer sk-one, Bearer sk-one",
                          "Bearer sk-one sk-one", " Bearer sk-one", "Bearer key-1"})
    EXPECT_FALSE(keys.client_of(bad)) << bad;
  EXPECT_FALSE(keys.client_of(std::string_view("Bearer sk-one\0", 14)));
  EXPECT_FALSE(keys.client_of("Bearer " + std::string(1 << 20, 'x')));
}

TEST_F(Keys, EachOfManyKeysIsFound) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += concat("client-", i, ":sk-", i * 7919, "\n");
  const ApiKeys keys("", file(text));
  for (int i = 0; i < 1000; ++i)
    EXPECT_THAT(keys.client_of(concat("Bearer sk-", i * 7919)), Optional(concat("client-", i)));
  EXPECT_FALSE(keys.client_of("Bearer sk-1"));
  expect_refused(text + "hush", ":1001");
}

TEST_F(Keys, InvalidLinesAreReportedByNumberAndNotShown) {
  expect_refused("", "");
  expect_refused("# nothing\n\n", "");
  expect_refused("sk-one\nhush hush", ":2");
  expect_refused("\n\nhush\x01", ":3");
  expect_refused("h\xc3\xbbsh:hush", ":1");
  expect_refused(":hush", ":1");
  expect_refused("name:", ":1");
  expect_refused("a name:hush", ":1");
  expect_refused(std::string(65, 'n') + ":hush", ":1");
  expect_refused("name:hush" + std::string(512, 'x'), ":1");
  expect_refused(std::string("hush\0hush", 9), ":1");
}

TEST_F(Keys, DuplicatesAreRefused) {
  expect_refused("a:hush\nb:hush", ":2");
  expect_refused("a:hush\na:x", ":2");
  expect_refused("hush", ":1", "hush");
  expect_refused("key-1:x", ":1", "hush");  // the name of the first key
}

TEST_F(Keys, UnreadableFilesAreErrors) {
  EXPECT_THROW(ApiKeys("", dir_.path("gone")), Error);
  EXPECT_THROW(ApiKeys("", dir_.path()), Error);
  EXPECT_THROW(ApiKeys("", file(std::string((1 << 20) + 1, '#'))), Error);
}

TEST_F(Keys, AWorldReadableFileIsWarnedAbout) {
  const ApiKeys keys("", file("sk-hush", 0644), "admin_key");
  ASSERT_EQ(remarks_.size(), 1u);
  EXPECT_THAT(remarks_[0], AllOf(HasSubstr("admin_key_file: "), HasSubstr(path()), Not(HasSubstr("hush"))));
}

TEST_F(Keys, SharedKeysAreDetected) {
  const ApiKeys clients("one", file("two\nthree"));
  EXPECT_TRUE(ApiKeys("three", "").shares_a_key_with(clients));
  EXPECT_FALSE(ApiKeys("four", "").shares_a_key_with(clients));
  EXPECT_FALSE(ApiKeys().shares_a_key_with(clients));
}

}  // namespace
}  // namespace shoal::server
