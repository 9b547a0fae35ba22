#include "shoal/settings.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "settings/table.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

using Texts = std::map<std::string, std::string>;

class Settings : public testing::Test {
 protected:
  std::string toml(const std::string& text) const { return dir_.write("shoal.toml", text); }
  ResolvedSettings resolve(Texts flags, Texts environment, const std::string& file = "") const {
    return resolve_settings({std::move(flags), std::move(environment), file.empty() ? "" : toml(file)});
  }
  // The config from `environment` with no other source.
  EngineConfig with(Texts environment) const { return resolve({}, std::move(environment)).config; }
  EngineConfig with_file(const std::string& text) const { return resolve({}, {}, text).config; }
  ServerConfig server_with(Texts flags, Texts environment = {}) const {
    return resolve(std::move(flags), std::move(environment)).server;
  }

  void expect_error(const SettingSources& sources, ErrorCode code,
                    const testing::Matcher<std::string>& message) const {
    try {
      resolve_settings(sources);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      EXPECT_THAT(error.message(), message);
    }
  }
  void expect_refused(const SettingSources& sources, const testing::Matcher<std::string>& message) const {
    expect_error(sources, ErrorCode::invalid_argument, message);
  }
  static std::string source_of(const ResolvedSettings& resolved, const std::string& key) {
    for (const ResolvedSettings::Origin& origin : resolved.origins)
      if (origin.key == key) return origin.source;
    return "no such setting";
  }

  const TemporaryFolder dir_;
};

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

TEST_F(Settings, OlderSettingsWithoutCounterpartAreRefusedByName) {
  const auto unsupported = [&](const SettingSources& sources, const testing::Matcher<std::string>& message) {
    expect_error(sources, ErrorCode::unsupported, message);
  };
  unsupported({.environment = {{"S1_MINI_COMPILE_BACKEND", "inductor"}}},
              AllOf(HasSubstr("S1_MINI_COMPILE_BACKEND"), HasSubstr("nothing to compile at run time")));
  unsupported({.environment = {{"S1_MINI_DEVICE", "mps"}}},
              AllOf(HasSubstr("Apple GPUs are not supported; use cpu"), HasSubstr("S1_MINI_DEVICE")));
  unsupported({.flags = {{"device", "cpu"}}, .environment = {{"S1_MINI_PRECISION", "float16"}}},
              AllOf(HasSubstr("float16"), HasSubstr("GPU"), HasSubstr("S1_MINI_PRECISION")));
  unsupported({.flags = {{"half", "true"}, {"device", "cpu"}}},
              AllOf(HasSubstr("float16"), HasSubstr("--half")));
}

TEST_F(Settings, ARefusedSettingDoesNotMatterOnceOverridden) {
  EXPECT_EQ(resolve({{"precision", "float32"}, {"device", "cpu"}}, {{"S1_MINI_PRECISION", "float16"}})
                .config.precision,
            Precision::float32);
  EXPECT_EQ(resolve({{"device", "cpu"}}, {{"S1_MINI_DEVICE", "mps"}}).config.device, "cpu");
}

TEST_F(Settings, TwoNamesThatDisagreeAreAnErrorNamingBoth) {
  const auto both = [&](const Texts& environment) {
    testing::Matcher<std::string> names = HasSubstr("keep one");
    for (const auto& [name, value] : environment) names = AllOf(names, HasSubstr(name + " says"));
    expect_refused({.environment = environment}, names);
  };
  both({{"SHOAL_DEVICE", "cpu"}, {"S1_MINI_DEVICE", "cuda"}});
  both({{"S1_MINI_BATCH_TIMEOUT", "200"}, {"S1_MINI_BATCH_TIMEOUT_MS", "50"}});
  both({{"S1_MINI_ENABLE_BATCHING", "false"}, {"S1_MINI_BATCH_SIZE", "8"}});
  both({{"S1_MINI_ENABLE_BATCHING", "false"}, {"SHOAL_MAX_BATCH_SIZE", "8"}});
  both({{"SHOAL_CUDA_GRAPHS", "1"}, {"S1_MINI_COMPILE", "off"}});
  expect_refused({.toml_path = toml("max_batch_size = 8\nenable_batching = false\n")},
                 AllOf(HasSubstr("shoal.toml:1 max_batch_size says 8"),
                       HasSubstr("shoal.toml:2 enable_batching says 1")));
  expect_refused({.flags = {{"half", "true"}, {"precision", "bfloat16"}}},
                 AllOf(HasSubstr("--half"), HasSubstr("--precision")));
  expect_refused({.flags = {{"compile", "true"}, {"cuda_graphs", "false"}}},
                 AllOf(HasSubstr("--compile"), HasSubstr("--cuda-graphs")));
}

TEST_F(Settings, TwoNamesThatAgreeAreFine) {
  EXPECT_EQ(with({{"SHOAL_DEVICE", "cpu"}, {"S1_MINI_DEVICE", "cpu"}}).device, "cpu");
  EXPECT_FALSE(with({{"SHOAL_CUDA_GRAPHS", "0"}, {"S1_MINI_COMPILE", "off"}}).cuda_graphs);
  EXPECT_EQ(with({{"S1_MINI_ENABLE_BATCHING", "false"}, {"S1_MINI_BATCH_SIZE", "1"}}).max_batch_size, 1);
  EXPECT_EQ(with({{"S1_MINI_ENABLE_BATCHING", "true"}, {"S1_MINI_BATCH_SIZE", "8"}}).max_batch_size, 8);
  EXPECT_EQ(with_file("enable_batching = false\nmax_batch_size = 1").max_batch_size, 1);
  EXPECT_EQ(source_of(resolve({}, {{"SHOAL_DEVICE", "cpu"}, {"S1_MINI_DEVICE", "cpu"}}), "device"),
            "environment SHOAL_DEVICE");
  // Names of different sources never disagree: the stronger source wins.
  EXPECT_EQ(resolve({{"device", "auto"}}, {{"SHOAL_DEVICE", "cpu"}}, "device = 'cuda'").config.device,
            "auto");
}

TEST_F(Settings, UnknownNamesFailWithTheNearestKnownOne) {
  const auto unknown = [&](const std::string& name, const std::string& nearest) {
    expect_refused({.environment = {{name, "1"}}},
                   AllOf(HasSubstr(name + ":"), HasSubstr("the nearest is " + nearest)));
  };
  unknown("SHOAL_THREAD", "SHOAL_THREADS");
  unknown("SHOAL_MAX_BATCHSIZE", "SHOAL_MAX_BATCH_SIZE");
  unknown("S1_MINI_BATCHSIZE", "S1_MINI_BATCH_SIZE");
  unknown("S1_MINI_THREADS", "SHOAL_THREADS");
  unknown("S1_MINI_METRICS_ENABLE", "S1_MINI_METRICS_ENABLED");
  unknown("SHOAL_threads", "S");
  expect_refused({.toml_path = toml("threads = 2\nmax-batch-size = 3\n")},
                 AllOf(HasSubstr("shoal.toml:2: "), HasSubstr("max-batch-size"),
                       HasSubstr("nearest is max_batch_size")));
  expect_refused({.flags = {{"no_such", "1"}}}, HasSubstr("--no-such"));
}

TEST_F(Settings, EmptyVariablesCountAsUnset) {
  Texts empty = {{"SHOAL_NO_SUCH", ""}, {"S1_MINI_METRICS_ENABLED", ""}};
  for (const Setting& setting : all_settings()) empty[variable_of(setting)] = "";
  for (const settings::Alias& alias : settings::aliases())
    if (alias.source == settings::Source::environment) empty[std::string(alias.name)] = "";
  const ResolvedSettings resolved = resolve({}, empty, "threads = 2");
  EXPECT_EQ(resolved.config, (EngineConfig{.threads = 2}));
}

TEST_F(Settings, VariablesOfOtherToolsAreIgnored) {
  EXPECT_EQ(with({{"SHOAL_CONFIG", "x.toml"},
                  {"SHOAL_MODEL_MOUNT", "/no/such/folder"},
                  {"SHOAL_VOICE_DIR", "/voice"},
                  {"SHOAL_CPU_ISA", "avx2"},
                  // A Kubernetes service called shoal, one called s1-mini.
                  {"SHOAL_SERVICE_HOST", "10.0.0.1"},
                  {"SHOAL_SERVICE_PORT", "8080"},
                  {"SHOAL_SERVICE_PORT_HTTP", "8080"},
                  {"SHOAL_PORT", "tcp://10.0.0.1:8080"},
                  {"SHOAL_PORT_8080_TCP", "tcp://10.0.0.1:8080"},
                  {"SHOAL_PORT_8080_TCP_ADDR", "10.0.0.1"},
                  {"S1_MINI_SERVICE_HOST", "10.0.0.1"},
                  {"S1_MINI_PORT_80_TCP_PROTO", "tcp"}}),
            EngineConfig{});
  expect_refused({.environment = {{"SHOAL_PORT", "8080"}}}, HasSubstr("SHOAL_PORT"));
}

TEST_F(Settings, ValuesAreStrictAndNameTheirSource) {
  expect_refused({.environment = {{"SHOAL_THREADS", "8x"}}},
                 testing::StrEq("threads: expected an integer, got \"8x\" (environment SHOAL_THREADS)"));
  expect_refused({.environment = {{"S1_MINI_COMPILE", "maybe"}}},
                 AllOf(HasSubstr("cuda_graphs: expected true or false"), HasSubstr("S1_MINI_COMPILE")));
  expect_refused({.environment = {{"S1_MINI_ENABLE_BATCHING", "2"}}}, HasSubstr("S1_MINI_ENABLE_BATCHING"));
  expect_refused(
      {.flags = {{"kv_memory_fraction", "half"}}},
      testing::StrEq("kv_memory_fraction: expected a number, got \"half\" (flag --kv-memory-fraction)"));
  expect_refused({.flags = {{"max_batch_size", "0"}}},
                 testing::StrEq("max_batch_size: expected 1 to 1024, got 0 (flag --max-batch-size)"));
  expect_refused({.flags = {{"max_batch_size", "4294967297"}}},
                 HasSubstr("max_batch_size: expected 1 to 1024"));
  expect_refused({.flags = {{"prefetch_s", "nan"}}}, HasSubstr("prefetch_s: expected 1.0 to 3600.0"));
  expect_refused({.environment = {{"SHOAL_DEVICE", "gpu"}}}, HasSubstr("(environment SHOAL_DEVICE)"));
  expect_refused({.flags = {{"precision", "bf16"}}}, HasSubstr("(flag --precision)"));
  // Wrong text is wrong also where a flag wins.
  expect_refused({.flags = {{"threads", "2"}}, .environment = {{"SHOAL_THREADS", "8x"}}}, HasSubstr("8x"));
}

TEST_F(Settings, ConflictsNameTheSourceOfTheWrongField) {
  expect_refused({.flags = {{"max_batch_size", "64"}}, .environment = {{"SHOAL_MAX_STREAMS", "8"}}},
                 AllOf(HasSubstr("max_streams"), HasSubstr("(environment SHOAL_MAX_STREAMS)")));
}

TEST_F(Settings, TypesInTheFileAreExact) {
  EXPECT_EQ(with_file("prefetch_s = 20").prefetch_s, 20.0);
  EXPECT_EQ(with_file("prefetch_s = 2.5").prefetch_s, 2.5);
  EXPECT_EQ(with_file("model = 'x'").model, "x");
  const auto wrong = [&](const std::string& line, const std::string& message) {
    expect_refused({.toml_path = toml("\n\n" + line + "\n")}, testing::EndsWith("shoal.toml:3: " + message));
  };
  wrong("threads = 99999999999999999999", "threads: expected 0 to 1024, got 99999999999999999999");
  wrong("kv_memory_fraction = 1e999", "kv_memory_fraction: expected 0.01 to 0.95, got 1e999");
  wrong("threads = '8'", "threads: expected an integer, got a text");
  wrong("threads = 8.0", "threads: expected an integer, got a number");
  wrong("threads = true", "threads: expected an integer, got true or false");
  wrong("prefix_cache = 1", "prefix_cache: expected true or false, got an integer");
  wrong("prefix_cache = 'true'", "prefix_cache: expected true or false, got a text");
  wrong("enable_batching = 0", "enable_batching: expected true or false, got an integer");
  wrong("model = 3", "model: expected a text, got an integer");
  wrong("prefetch_s = '20'", "prefetch_s: expected a number, got a text");
  for (const char* nested :
       {"threads = [8]", "model = {a = 1}", "[server]", "engine.threads = 8", "threads = 2024-01-01"})
    expect_refused({.toml_path = toml(nested)},
                   AllOf(HasSubstr("shoal.toml:1: "), HasSubstr("a setting is one key = value on one line")));
  expect_refused({.toml_path = toml("threads = 5000")}, HasSubstr("shoal.toml:1"));
  expect_refused({.toml_path = toml("model = \"a\\u0000b\"")}, HasSubstr("NUL"));
}

TEST_F(Settings, InvalidTomlIsReportedWithItsLine) {
  expect_error({.toml_path = toml("threads = 2\nmodel = \n")}, ErrorCode::corrupt_file,
               HasSubstr("shoal.toml:2: "));
  expect_error({.toml_path = dir_.path("missing.toml")}, ErrorCode::not_found, HasSubstr("missing.toml"));
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
