// What --print-config prints is a TOML file that gives the same config.
#include <algorithm>
#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <toml++/toml.h>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "settings/table.h"
#include "shoal/settings.h"

namespace shoal {
namespace {

using testing::HasSubstr;

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
  if (row.key == "listen" || row.key == "operator_listen") return std::string("0.0.0.0:0");
  if (row.key == "wyoming") return std::string("tcp://[::1]:0, unix:///run/a b.sock");
  if (row.allowed.secret) return std::string();
  if (row.key.ends_with("_route")) return concat("/", row.key);
  if (row.key == "cors_origins") return std::string("https://a.example, http://b:1");
  if (row.key == "log_format") return std::string("json");
  if (row.key == "log_level") return std::string("error");
  if (row.key == "models") return std::string("a=b, c=/d e");
  if (row.key == "voice_aliases") return std::string("a=b, c d=e(2)+f");
  if (row.key == "model_name") return std::string("n\xc3\xa9");
  if (row.key == "device") return std::string(random() % 2 ? "auto" : "cuda:3");
  if (row.key == "weights") return std::string(std::array{"int4", "int8", "fp8"}[random() % 3]);
  if (row.key == "kv_precision") return std::string(random() % 2 ? "model" : "int8");
  if (row.key == "codec_weights") return std::string("int8");
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

TEST(PrintSettings, PrintedSettingsReadBackTheSame) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    settings::Configs configs;
    std::vector<ResolvedSettings::Origin> origins;
    for (const settings::Row& row : settings::rows()) {
      settings::set(row, random_value(row, random), configs);
      origins.push_back({std::string(row.key), "environment SHOAL_X"});
    }
    EngineConfig& engine = configs.engine;
    if (engine.max_streams < engine.max_batch_size) engine.max_streams = 0;
    engine.min_wait_ms = std::min(engine.min_wait_ms, engine.max_wait_ms);
    if (engine.threads != 0 && engine.codec_threads > engine.threads) engine.codec_threads = -1;
    if (!engine.with_encoder) engine.warm_voices = "none";
    configs.server.max_body_memory_mb =
        std::max(configs.server.max_body_memory_mb, configs.server.max_body_mb);
    const std::string text = print_settings({configs.engine, configs.server, origins, {}});
    const ResolvedSettings read =
        resolve_settings({.toml_path = TemporaryFolder().write("shoal.toml", text)});
    ASSERT_EQ(read.config, configs.engine) << text;
    ASSERT_EQ(read.server, configs.server) << text;
    ASSERT_EQ(toml::parse(text).size(), all_settings().size()) << text;  // another reader calls it TOML too
  }
}

TEST(PrintSettings, EveryPrintedLineSaysWhereItsValueCameFrom) {
  const TemporaryFolder folder;
  const std::string file = folder.write("shoal.toml", "max_queue = 9");
  const std::string text = print_settings(resolve_settings(
      {.flags = {{"threads", "3"}}, .environment = {{"S1_MINI_DEVICE", "cpu"}}, .toml_path = file}));
  EXPECT_THAT(text, HasSubstr("threads = 3  # flag --threads\n"));
  EXPECT_THAT(text, HasSubstr("device = \"cpu\"  # environment S1_MINI_DEVICE\n"));
  EXPECT_THAT(text, HasSubstr("max_queue = 9  # " + file + ":1\n"));
  EXPECT_THAT(text, HasSubstr("prefetch_s = 20.0  # default\n"));
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), all_settings().size());
}

TEST(PrintSettings, PrintsOnlyTheRequestedSettings) {
  const std::string text = print_settings(resolve_settings({}), engine_settings());
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), engine_settings().size());
  EXPECT_THAT(text, testing::Not(HasSubstr("listen")));
}

TEST(PrintSettings, KeysAreNeverPrinted) {
  const ResolvedSettings resolved = resolve_settings(
      {.flags = {{"api_key", "sk-very-secret"}}, .environment = {{"SHOAL_ADMIN_KEY", "sk-more-secret"}}});
  EXPECT_EQ(resolved.server.api_key, "sk-very-secret");
  const std::string text = print_settings(resolved);
  EXPECT_THAT(text, testing::Not(HasSubstr("-secret")));
  EXPECT_THAT(text, HasSubstr("api_key = \"(set)\"  # flag --api-key; the key is not shown"));
  EXPECT_THAT(text, HasSubstr("admin_key = \"(set)\"  # environment SHOAL_ADMIN_KEY; the key is not shown"));
  EXPECT_EQ(toml::parse(text).size(), all_settings().size());
  try {  // and the replacement text is not taken for a key
    resolve_settings({.toml_path = TemporaryFolder().write("shoal.toml", text)});
    FAIL() << "(set) was taken for a key";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::AllOf(testing::StartsWith("api_key: "), HasSubstr("the key itself"),
                                                HasSubstr("shoal.toml:")));
  }
}

TEST(PrintSettings, APathThatTomlCannotHoldIsUsableButNotPrintable) {
  const ResolvedSettings resolved = resolve_settings({.flags = {{"model", "/models/\xff"}}});
  EXPECT_EQ(resolved.config.model, "/models/\xff");
  EXPECT_THROW(print_settings(resolved), Error);
}

}  // namespace
}  // namespace shoal
