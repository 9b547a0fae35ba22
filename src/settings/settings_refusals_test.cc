#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/settings_testing.h"
#include "settings/table.h"
#include "shoal/settings.h"

namespace shoal {
namespace {

using settings_testing::Settings;
using settings_testing::Texts;
using testing::AllOf;
using testing::HasSubstr;

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

}  // namespace
}  // namespace shoal
