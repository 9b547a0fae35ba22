#include "cli/engine_settings.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder_testing.h"

namespace shoal::cli {
namespace {

using testing::HasSubstr;

// A command with every setting and a text, as `say` has one.
struct Command {
  CLI::App app{"", "test"};
  EngineSettings settings;
  std::string text;

  explicit Command(EngineSettings::Scope scope = EngineSettings::Scope::engine) {
    app.add_option("text", text);
    settings.add_to(app, scope);
  }
  ResolvedSettings parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(std::move(arguments));
    return settings.resolve();
  }
};

EngineConfig parsed(std::vector<std::string> arguments) {
  return Command().parse(std::move(arguments)).config;
}

std::string error_of(std::vector<std::string> arguments) {
  try {
    Command().parse(std::move(arguments));
  } catch (const Error& error) {
    return error.message();
  }
  return "accepted";
}

TEST(EngineSettings, EverySettingHasItsFlag) {
  const Command engine, server(EngineSettings::Scope::server);
  for (const Setting& setting : all_settings()) {
    EXPECT_EQ(engine.app.get_option_no_throw(flag_of(setting)) != nullptr, !setting.of_server) << setting.key;
    EXPECT_NE(server.app.get_option_no_throw(flag_of(setting)), nullptr) << setting.key;
  }
  for (const OlderFlag& older : older_flags()) {
    EXPECT_EQ(engine.app.get_option_no_throw(older.flag) != nullptr, !older.of_server) << older.flag;
    EXPECT_NE(server.app.get_option_no_throw(older.flag), nullptr) << older.flag;
  }
}

TEST(EngineSettings, TheServersFlagsBecomeItsConfig) {
  const ResolvedSettings resolved =
      Command(EngineSettings::Scope::server)
          .parse({"--listen", "0.0.0.0:0", "--no-metrics", "--api-key=k", "--grace-s", "0", "--threads", "2",
                  "--llama-checkpoint-path", "m", "--workers", "1", "--mode", "tts", "--half"});
  EXPECT_EQ(resolved.server,
            (ServerConfig{.listen = "0.0.0.0:0", .api_key = "k", .grace_s = 0, .metrics = false}));
  EXPECT_EQ(resolved.config, (EngineConfig{.model = "m", .precision = Precision::float16, .threads = 2}));
  EXPECT_THROW(Command(EngineSettings::Scope::server).parse({"--workers", "2"}), Error);
  EXPECT_THROW(parsed({"--listen", "0.0.0.0:0"}), CLI::ParseError);
}

TEST(EngineSettings, AllCommandsAcceptTheSameEnvironment) {
  ASSERT_EQ(setenv("SHOAL_LISTEN", "0.0.0.0:81", 1), 0);
  EXPECT_EQ(Command().parse({}).server.listen, "0.0.0.0:81");
  ASSERT_EQ(setenv("SHOAL_LISTEN", "nowhere", 1), 0);
  EXPECT_EQ(error_of({}),
            "listen: expected host:port or [v6]:port, got \"nowhere\" (environment SHOAL_LISTEN)");
  unsetenv("SHOAL_LISTEN");
}

TEST(EngineSettings, FlagsBecomeTheConfig) {
  EXPECT_EQ(parsed({}), EngineConfig{});
  EXPECT_EQ(
      parsed({"--threads", "3", "--codec-threads", "-1", "--prefetch-s=2.5", "--cache-dir", "", "--model=m"}),
      (EngineConfig{.model = "m", .threads = 3, .codec_threads = -1, .prefetch_s = 2.5}));
  EXPECT_FALSE(parsed({"--no-prefix-cache"}).prefix_cache);
  EXPECT_TRUE(parsed({"--semantic-only"}).semantic_only);
  EXPECT_FALSE(parsed({"--warm-up=false"}).warm_up);
  EXPECT_FALSE(parsed({"--no-compile"}).cuda_graphs);
  EXPECT_TRUE(parsed({"--compile", "--cuda-graphs"}).cuda_graphs);
}

TEST(EngineSettings, ASwitchDoesNotSwallowTheText) {
  Command command;
  EXPECT_FALSE(command.parse({"--no-warm-up", "Hello"}).config.warm_up);
  EXPECT_EQ(command.text, "Hello");
}

TEST(EngineSettings, BadFlagsNameThemselves) {
  EXPECT_EQ(error_of({"--threads", "8x"}), "threads: expected an integer, got \"8x\" (flag --threads)");
  EXPECT_EQ(error_of({"--threads", ""}), "threads: expected an integer, got \"\" (flag --threads)");
  EXPECT_THAT(error_of({"--threads", "-2"}), HasSubstr("expected 0 to 1024, got -2 (flag --threads)"));
  EXPECT_EQ(error_of({"--warm-up=maybe"}), "warm_up: expected true or false, got \"maybe\" (flag --warm-up)");
  EXPECT_THAT(error_of({"--half", "--device", "cpu"}), HasSubstr("float16 needs a GPU"));
  EXPECT_THAT(error_of({"--half", "--precision", "float32"}), HasSubstr("flag --half says"));
  EXPECT_THAT(error_of({"--no-compile", "--cuda-graphs"}), HasSubstr("flag --cuda-graphs says true"));
  EXPECT_THROW(parsed({"--prefix-cache", "--no-prefix-cache"}), CLI::ParseError);
  EXPECT_THROW(parsed({"--threads", "1", "--threads", "2"}), CLI::ParseError);
}

TEST(EngineSettings, TheConfigFlagOverridesTheFileOfTheEnvironment) {
  const TemporaryFolder dir;
  const std::string other = dir.write("b.toml", "threads = 3\n");
  ASSERT_EQ(setenv("SHOAL_CONFIG", dir.write("a.toml", "threads = 2\n").c_str(), 1), 0);
  EXPECT_EQ(parsed({}).threads, 2);
  EXPECT_EQ(parsed({"--config", other}).threads, 3);
  EXPECT_EQ(parsed({"--config", other, "--threads", "4"}).threads, 4);
  unsetenv("SHOAL_CONFIG");
}

TEST(EngineSettings, ACommandMayAcceptOnlySomeSettings) {
  CLI::App app("", "test");
  EngineSettings settings;
  settings.add_to(app, {"device", "precision"});
  EXPECT_NE(app.get_option_no_throw("--device"), nullptr);
  EXPECT_NE(app.get_option_no_throw("--half"), nullptr);
  EXPECT_EQ(app.get_option_no_throw("--threads"), nullptr);
  EXPECT_EQ(app.get_option_no_throw("--config"), nullptr);
  EXPECT_THROW(settings.add_to(app, {"devices"}), Error);
}

TEST(EngineSettings, HelpShowsHeadingsRangesAndDefaults) {
  const std::string help = Command().app.help();
  for (const char* part : {"Batching:", "--max-batch-size N=32", "(1 to 1024)", "--print-config",
                           "--no-prefix-cache", "(default: true)"})
    EXPECT_THAT(help, HasSubstr(part));
  EXPECT_THAT(help, testing::Not(HasSubstr("--listen")));
  const std::string all = Command(EngineSettings::Scope::server).app.help();
  for (const char* part : {"Batching:", "Keys and TLS:", "--listen TEXT=127.0.0.1:8080", "--no-metrics",
                           "Names of other servers:", "--workers"})
    EXPECT_THAT(all, HasSubstr(part));
}

}  // namespace
}  // namespace shoal::cli
