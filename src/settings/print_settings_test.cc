// What --print-config prints is a TOML file that gives the same config.
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <toml++/toml.h>

#include "base/error.h"
#include "settings/table.h"
#include "shoal/settings.h"

namespace shoal {
namespace {

using testing::HasSubstr;

// A file in a folder of its own, gone with this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    std::string name = testing::TempDir() + "/shoal_print_XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    dir_ = name;
    std::ofstream(path(), std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove_all(dir_); }
  std::string path() const { return dir_ + "/shoal.toml"; }

 private:
  std::string dir_;
};

// Any valid value of a row.
settings::Value random_value(const settings::Row& row, std::mt19937_64& random) {
  const settings::Allowed& allowed = row.allowed;
  switch (row.type()) {
    case settings::Type::boolean:
      return random() % 2 == 0;
    case settings::Type::integer:
      return std::uniform_int_distribution<int64_t>(static_cast<int64_t>(allowed.low),
                                                    static_cast<int64_t>(allowed.high))(random);
    case settings::Type::number:
      return std::uniform_real_distribution<double>(allowed.low, allowed.high)(random);
    case settings::Type::text:
      break;
  }
  if (row.key == "device") return std::string(random() % 2 ? "auto" : "cuda:3");
  if (row.key == "precision") return std::string(random() % 2 ? "float16" : "bfloat16");
  const std::vector<std::string> parts = {"a",
                                          "\"",
                                          "\\",
                                          "#",
                                          "'",
                                          "\n",
                                          "\t",
                                          "\x7f",
                                          "\x01",
                                          " ",
                                          "=",
                                          "\xc3\xa9",
                                          "\xf0\x9f\x90\x9f",
                                          "\\u0041",
                                          "\"\"\""};
  std::string text = "x";
  for (uint64_t i = random() % 12; i > 0; --i) text += parts[random() % parts.size()];
  return text;
}

TEST(PrintSettings, WhatIsPrintedReadsBackAsTheSame) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ResolvedSettings resolved;
    for (const settings::Row& row : settings::rows()) {
      settings::set(row, random_value(row, random), resolved.config);
      resolved.origins.push_back({std::string(row.key), "environment SHOAL_X"});
    }
    if (resolved.config.max_streams < resolved.config.max_batch_size) resolved.config.max_streams = 0;
    if (resolved.config.threads != 0 && resolved.config.codec_threads > resolved.config.threads)
      resolved.config.codec_threads = -1;
    if (!resolved.config.with_encoder) resolved.config.warm_voices = "none";
    const std::string text = print_settings(resolved);
    ASSERT_EQ(resolve_settings({.toml_path = TemporaryFile(text).path()}).config, resolved.config) << text;
    ASSERT_EQ(toml::parse(text).size(), engine_settings().size())
        << text;  // another reader calls it TOML too
  }
}

TEST(PrintSettings, EveryPrintedLineSaysWhereItsValueCameFrom) {
  const TemporaryFile file("max_queue = 9");
  const std::string text = print_settings(resolve_settings(
      {.flags = {{"threads", "3"}}, .environment = {{"S1_MINI_DEVICE", "cpu"}}, .toml_path = file.path()}));
  EXPECT_THAT(text, HasSubstr("threads = 3  # flag --threads\n"));
  EXPECT_THAT(text, HasSubstr("device = \"cpu\"  # environment S1_MINI_DEVICE\n"));
  EXPECT_THAT(text, HasSubstr("max_queue = 9  # " + file.path() + ":1\n"));
  EXPECT_THAT(text, HasSubstr("prefetch_s = 20.0  # default\n"));
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), engine_settings().size());
}

TEST(PrintSettings, APathThatTomlCannotHoldIsUsableButNotPrintable) {
  const ResolvedSettings resolved = resolve_settings({.flags = {{"model", "/models/\xff"}}});
  EXPECT_EQ(resolved.config.model, "/models/\xff");
  EXPECT_THROW(print_settings(resolved), Error);
}

}  // namespace
}  // namespace shoal
