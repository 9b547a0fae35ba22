#include "shoal/settings.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/settings_testing.h"
#include "settings/table.h"

namespace shoal {
namespace {

using settings_testing::Settings;
using settings_testing::Texts;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Settings, NothingGivenIsTheDefaults) {
  const ResolvedSettings resolved = resolve({}, {});
  EXPECT_EQ(resolved.config, EngineConfig{});
  EXPECT_EQ(resolved.server, ServerConfig{});
  ASSERT_EQ(resolved.origins.size(), all_settings().size());
  for (size_t i = 0; i < resolved.origins.size(); ++i) {
    EXPECT_EQ(resolved.origins[i].key, all_settings()[i].key);
    EXPECT_EQ(resolved.origins[i].source, "default");
  }
  EXPECT_THAT(resolved.notes, IsEmpty());
}

TEST_F(Settings, FlagsOverEnvironmentOverFileOverDefaults) {
  const std::string file = "threads = 1\nmax_queue = 11\nkv_page_size = 21\n";
  const ResolvedSettings resolved =
      resolve({{"threads", "3"}}, {{"SHOAL_THREADS", "2"}, {"SHOAL_MAX_QUEUE", "12"}}, file);
  EXPECT_EQ(resolved.config.threads, 3);
  EXPECT_EQ(resolved.config.max_queue, 12);
  EXPECT_EQ(resolved.config.kv_page_size, 21);
  EXPECT_EQ(resolved.config.max_batch_size, 32);
  EXPECT_EQ(source_of(resolved, "threads"), "flag --threads");
  EXPECT_EQ(source_of(resolved, "max_queue"), "environment SHOAL_MAX_QUEUE");
  EXPECT_EQ(source_of(resolved, "kv_page_size"), dir_.path("shoal.toml:3"));
  EXPECT_EQ(source_of(resolved, "max_batch_size"), "default");
}

TEST_F(Settings, OlderNamesHaveTheSamePrecedence) {
  EXPECT_EQ(resolve({{"device", "cpu"}}, {{"S1_MINI_DEVICE", "cuda"}}).config.device, "cpu");
  EXPECT_EQ(resolve({}, {{"S1_MINI_DEVICE", "cuda"}}, "device = 'cpu'").config.device, "cuda");
  EXPECT_EQ(resolve({{"max_batch_size", "8"}}, {{"S1_MINI_ENABLE_BATCHING", "false"}}).config.max_batch_size,
            8);
}

TEST_F(Settings, TheSectionOfAWorkerComesBeforeEverythingElse) {
  const std::string file = toml(
      "max_queue = 2\nmax_batch_size = 3\n[workers.w1]\nmax_batch_size = 4\n[workers.w2]\n"
      "max_batch_size = 5\nmax_queue = 6\n");
  const Texts flags = {{"max_batch_size", "7"}};
  const auto of = [&](const std::string& worker) { return resolve_settings({flags, {}, file, worker}); };
  EXPECT_EQ(of("").config.max_batch_size, 7);
  EXPECT_EQ(of("").notes.size(), 1u);
  EXPECT_EQ(of("w1").config.max_batch_size, 4);
  EXPECT_EQ(of("w1").config.max_queue, 2);
  EXPECT_EQ(of("w2").config.max_batch_size, 5);
  EXPECT_EQ(of("w2").config.max_queue, 6);
  EXPECT_EQ(source_of(of("w2"), "max_queue"), file + ":7");
  EXPECT_EQ(of("w3").config.max_batch_size, 7);
  EXPECT_THAT(of("w3").notes, IsEmpty());
  ASSERT_EQ(of("").of_workers.size(), 3u);
  EXPECT_EQ(of("").of_workers[2].worker + " " + of("").of_workers[2].key, "w2 max_queue");
  // Names and types are checked whoever is meant.
  expect_refused({{}, {}, toml("[workers.w1]\nmax_quue = 1\n"), "w2"}, HasSubstr("nearest is max_queue"));
}

TEST_F(Settings, EverySettingIsReadFromEverySource) {
  const std::map<std::string_view, std::string> kTexts = {{"precision", "float32"},
                                                          {"device", "cpu"},
                                                          {"weights", "int8"},
                                                          {"kv_precision", "int8"},
                                                          {"codec_weights", "int8"},
                                                          {"listen", "[::1]:9000"},
                                                          {"operator_listen", "[::1]:9001"},
                                                          {"api_key", "sk-1"},
                                                          {"admin_key", "sk-2"},
                                                          {"cors_origins", "*"},
                                                          {"models", "a=b"},
                                                          {"voice_aliases", "a=b"},
                                                          {"log_format", "json"},
                                                          {"log_level", "debug"},
                                                          {"health_route", "/h"},
                                                          {"predict_route", "/p:q"},
                                                          {"wyoming", "tcp://[::1]:1"}};
  for (const settings::Row& row : settings::rows()) {
    SCOPED_TRACE(row.key);
    // Another value than the default, as text and as TOML.
    const settings::Value wanted = [&]() -> settings::Value {
      const settings::Value usual = settings::get(row, {});
      if (const bool* boolean = std::get_if<bool>(&usual)) return !*boolean;
      if (row.type() == settings::Type::integer)
        return int64_t{row.key == "max_references" || row.key == "phonemizer_helpers" ? 6 : 65};
      if (row.type() == settings::Type::number) return row.key == "prefetch_s" ? 7.5 : 0.5;
      const auto text = kTexts.find(row.key);
      return text == kTexts.end() ? "some words" : text->second;
    }();
    // A certificate without a key is refused, and a minimum wait above the maximum.
    const bool tls = row.key.starts_with("tls_");
    const std::string other = row.key == "tls_key" ? "tls_certificate" : "tls_key";
    const Texts beside = tls                        ? Texts{{other, "x.pem"}}
                         : row.key == "min_wait_ms" ? Texts{{"max_wait_ms", "100"}}
                                                    : Texts{};
    const std::string in_toml = settings::to_toml(wanted);
    const std::string text = in_toml[0] == '"' ? in_toml.substr(1, in_toml.size() - 2) : in_toml;
    const Setting setting{.key = std::string(row.key)};
    const auto value = [&](Texts flags, Texts environment, const std::string& file) {
      flags.insert(beside.begin(), beside.end());
      const ResolvedSettings resolved = resolve(std::move(flags), std::move(environment), file);
      return settings::get(row, {resolved.config, resolved.server});
    };
    EXPECT_EQ(value({{setting.key, text}}, {}, ""), wanted);
    EXPECT_EQ(value({}, {{variable_of(setting), text}}, ""), wanted);
    EXPECT_EQ(value({}, {}, setting.key + " = " + in_toml), wanted);
  }
}

TEST_F(Settings, EveryOlderVariableWorksAsCompatibilityPromises) {
  EXPECT_EQ(with({{"S1_MINI_DEVICE", "cuda:1"}}).device, "cuda:1");
  EXPECT_EQ(with({{"S1_MINI_DEVICE", "auto"}}).device, "auto");
  EXPECT_EQ(with({{"S1_MINI_PRECISION", "bfloat16"}}).precision, Precision::bfloat16);
  EXPECT_EQ(with({{"S1_MINI_PRECISION", "float32"}}).precision, Precision::float32);
  EXPECT_EQ(with({{"S1_MINI_PRECISION", "float16"}}).precision, Precision::float16);
  EXPECT_FALSE(with({{"S1_MINI_COMPILE", "false"}}).cuda_graphs);
  EXPECT_TRUE(with({{"S1_MINI_COMPILE", "True"}}).cuda_graphs);
  EXPECT_EQ(with({{"S1_MINI_COMPILE_BACKEND", ""}}), EngineConfig{});
  EXPECT_EQ(with({{"S1_MINI_ENABLE_BATCHING", "false"}}).max_batch_size, 1);
  EXPECT_EQ(with({{"S1_MINI_ENABLE_BATCHING", "true"}}).max_batch_size, 32);
  EXPECT_EQ(with({{"S1_MINI_BATCH_SIZE", "4"}}).max_batch_size, 4);
  EXPECT_EQ(with({{"S1_MINI_BATCH_TIMEOUT", "200"}}).batch_timeout_ms, 200);
  EXPECT_EQ(with({{"S1_MINI_BATCH_TIMEOUT_MS", "50"}}).batch_timeout_ms, 50);
  EXPECT_FALSE(with({{"S1_MINI_BATCH_GROUPING", "off"}}).batch_grouping);
  EXPECT_EQ(with({{"S1_MINI_KV_CACHE_SIZE", "7"}}).kv_cache_size, 7);
  EXPECT_EQ(with({{"S1_MINI_REFERENCE_CACHE_SIZE", "70"}}).reference_cache_size, 70);
  EXPECT_EQ(with({{"S1_MINI_REQUEST_TIMEOUT_S", "90"}}).request_timeout_s, 90);
  EXPECT_FALSE(with({{"S1_MINI_VRAM_CLEAR_ON_OOM", "no"}}).drop_cache_on_oom);
  EXPECT_FALSE(server_with({}, {{"S1_MINI_METRICS_ENABLED", "false"}}).metrics);
  EXPECT_TRUE(server_with({}, {{"S1_MINI_METRICS_ENABLED", "True"}}).metrics);
  EXPECT_EQ(source_of(resolve({}, {{"S1_MINI_BATCH_SIZE", "4"}}), "max_batch_size"),
            "environment S1_MINI_BATCH_SIZE");
}

TEST_F(Settings, TheDefaultsOfTheOlderServersAreTheDefaultsHere) {
  EXPECT_EQ(with({{"S1_MINI_KV_CACHE_SIZE", "100"},
                  {"S1_MINI_REFERENCE_CACHE_SIZE", "1000"},
                  {"S1_MINI_REQUEST_TIMEOUT_S", "60"},
                  {"S1_MINI_VRAM_CLEAR_ON_OOM", "true"},
                  {"S1_MINI_BATCH_GROUPING", "true"},
                  {"S1_MINI_COMPILE", "true"}}),
            EngineConfig{});
}

TEST_F(Settings, OlderKeysAndSwitches) {
  EXPECT_EQ(with_file("enable_batching = false").max_batch_size, 1);
  EXPECT_EQ(with_file("enable_batching = true").max_batch_size, 32);
  EXPECT_EQ(with_file("enable_kokoro_batching = false").max_batch_size, 1);
  EXPECT_FALSE(with_file("batch_grouping = false").batch_grouping);
  EXPECT_FALSE(resolve({{"compile", "false"}}, {}).config.cuda_graphs);
  EXPECT_EQ(resolve({{"half", "true"}}, {}).config.precision, Precision::float16);
  EXPECT_EQ(resolve({{"half", "false"}}, {}).config.precision, Precision::automatic);
  EXPECT_EQ(source_of(resolve({}, {}, "\nenable_batching = false"), "max_batch_size"),
            dir_.path("shoal.toml:2 enable_batching"));
}

TEST_F(Settings, BatchingEnabledAtAHigherLevelIsNotDisabledBelow) {
  EXPECT_EQ(
      resolve({}, {{"S1_MINI_ENABLE_BATCHING", "true"}}, "enable_batching = false").config.max_batch_size,
      32);
  EXPECT_EQ(resolve({}, {{"S1_MINI_ENABLE_BATCHING", "true"}}, "max_batch_size = 6").config.max_batch_size,
            6);
  EXPECT_EQ(resolve({}, {{"S1_MINI_ENABLE_BATCHING", "false"}}, "max_batch_size = 6").config.max_batch_size,
            1);
}

TEST_F(Settings, ABatchingSwitchForOneModelConflictsWithOthers) {
  const std::string models = "models = 'kokoro=/srv/k'\n";
  const auto refused = [&](const Texts& environment, const std::string& line, const std::string& name) {
    expect_error({.environment = environment, .toml_path = toml(models + line)}, ErrorCode::unsupported,
                 AllOf(HasSubstr("max_batch_size: "), HasSubstr(name), HasSubstr("models")));
  };
  refused({}, "enable_kokoro_batching = false", "shoal.toml:2 enable_kokoro_batching");
  refused({}, "enable_batching = false", "shoal.toml:2 enable_batching");
  refused({{"S1_MINI_ENABLE_BATCHING", "false"}}, "", "environment S1_MINI_ENABLE_BATCHING");
  // With models for all, without a value, or overridden.
  EXPECT_EQ(with_file(models + "max_batch_size = 1").max_batch_size, 1);
  EXPECT_EQ(with_file(models + "enable_kokoro_batching = true").max_batch_size, 32);
  EXPECT_EQ(with_file(models + "max_batch_size = 1\nenable_kokoro_batching = false").max_batch_size, 1);
  EXPECT_EQ(resolve({{"max_batch_size", "8"}}, {}, models + "enable_batching = false").config.max_batch_size,
            8);
}

TEST_F(Settings, TheProcessEnvironmentNamesTheFile) {
  const std::string file = toml("threads = 2");
  ASSERT_EQ(setenv("SHOAL_CONFIG", file.c_str(), 1), 0);
  ASSERT_EQ(setenv("SHOAL_MAX_QUEUE", "5", 1), 0);
  ASSERT_EQ(setenv("UNRELATED_SHOAL_THREADS", "7", 1), 0);
  const ResolvedSettings resolved = resolve_settings(process_settings({{"kv_page_size", "8"}}, ""));
  EXPECT_EQ(resolved.config, (EngineConfig{.threads = 2, .max_queue = 5, .kv_page_size = 8}));
  EXPECT_EQ(process_settings({}, "other.toml").toml_path, "other.toml");
  unsetenv("SHOAL_CONFIG");
  unsetenv("SHOAL_MAX_QUEUE");
  unsetenv("UNRELATED_SHOAL_THREADS");
  EXPECT_EQ(process_settings({}, "").toml_path, "");
}

}  // namespace
}  // namespace shoal
