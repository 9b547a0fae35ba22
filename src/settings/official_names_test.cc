// The flags with which the servers that Shoal replaces are started.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "settings/table.h"
#include "shoal/settings.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Texts = std::map<std::string, std::string>;

ResolvedSettings with_flags(Texts flags) { return resolve_settings({.flags = std::move(flags)}); }

void expect_refused(Texts flags, ErrorCode code, const testing::Matcher<std::string>& message) {
  try {
    with_flags(std::move(flags));
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_THAT(error.message(), message);
  }
}

// The command line of the official documentation.
TEST(OfficialNames, TheOfficialCommandLineStarts) {
  const ResolvedSettings resolved =
      with_flags({{"mode", "tts"},
                  {"listen", "0.0.0.0:8080"},
                  {"device", "cuda"},
                  {"half", "true"},
                  {"compile", "true"},
                  {"max_text_length", "500"},
                  {"workers", "1"},
                  {"api_key", "sk-1"},
                  {"llama_checkpoint_path", "checkpoints/openaudio-s1-mini"},
                  {"decoder_checkpoint_path", "checkpoints/openaudio-s1-mini/codec.pth"},
                  {"decoder_config_name", "modded_dac_vq"}});
  EXPECT_EQ(resolved.config, (EngineConfig{.model = "checkpoints/openaudio-s1-mini",
                                           .device = "cuda",
                                           .precision = Precision::float16}));
  EXPECT_EQ(resolved.server,
            (ServerConfig{.listen = "0.0.0.0:8080", .api_key = "sk-1", .max_text_length = 500}));
}

TEST(OfficialNames, WhatCannotBeHadIsRefusedByName) {
  const auto unsupported = ErrorCode::unsupported, invalid = ErrorCode::invalid_argument;
  expect_refused({{"workers", "2"}}, unsupported, AllOf(HasSubstr("flag --workers"), HasSubstr("got 2")));
  expect_refused({{"workers", "0"}}, invalid, HasSubstr("flag --workers"));
  expect_refused({{"workers", "many"}}, invalid, HasSubstr("flag --workers: expected an integer"));
  expect_refused({{"mode", "agent"}}, unsupported, AllOf(HasSubstr("flag --mode"), HasSubstr("\"agent\"")));
  expect_refused({{"decoder_config_name", "firefly"}}, unsupported, HasSubstr("flag --decoder-config-name"));
}

TEST(OfficialNames, WorkersInTheFile) {
  const TemporaryFolder dir;
  const auto code_of = [&](const std::string& text) {
    dir.write("a.toml", text);
    try {
      resolve_settings({.toml_path = dir.path("a.toml")});
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("a.toml:1: workers"));
      return name_of(error.code());
    }
    return std::string_view("accepted");
  };
  EXPECT_EQ(code_of("workers = 1"), "accepted");
  EXPECT_EQ(code_of("workers = 3"), name_of(ErrorCode::unsupported));
  EXPECT_EQ(code_of("workers = '1'"), name_of(ErrorCode::invalid_argument));
  EXPECT_THROW(resolve_settings({.environment = {{"SHOAL_WORKERS", "1"}}}), Error);
}

TEST(OfficialNames, TheCodecIsTheOneOfTheModelFolder) {
  const std::string path = "decoder_checkpoint_path";
  EXPECT_NO_THROW(with_flags({{"model", "m/"}, {path, "./m/codec.pth"}}));
  EXPECT_NO_THROW(with_flags({{"model", "/x/../m"}, {path, "/m/codec.pth"}}));
  const std::string here = std::filesystem::current_path().string();
  EXPECT_NO_THROW(with_flags({{"model", "m"}, {path, here + "/m/codec.pth"}}));
  for (const char* bad : {"codec.pth", "m/other.pth", "m/x/codec.pth", "m", ""})
    expect_refused({{"model", "m"}, {path, bad}}, ErrorCode::unsupported,
                   AllOf(HasSubstr("--decoder-checkpoint-path"), HasSubstr("m/codec.pth")));
  expect_refused({{path, "codec.pth"}}, ErrorCode::unsupported, HasSubstr("built-in voice"));
}

TEST(OfficialNames, TwoNamesOfTheModelMayNotDisagree) {
  EXPECT_EQ(with_flags({{"model", "m"}, {"llama_checkpoint_path", "m"}}).config.model, "m");
  expect_refused({{"model", "m"}, {"llama_checkpoint_path", "n"}}, ErrorCode::invalid_argument,
                 AllOf(HasSubstr("--model"), HasSubstr("--llama-checkpoint-path")));
}

TEST(Secrets, AKeyAmongTheArgumentsIsRemarkedOnWithoutTheKey) {
  const ResolvedSettings resolved = with_flags({{"api_key", "sk-hush"}, {"admin_key", "ad-hush"}});
  ASSERT_EQ(resolved.notes.size(), 2u);
  EXPECT_THAT(resolved.notes[0], AllOf(HasSubstr("flag --api-key"), HasSubstr("SHOAL_API_KEY"),
                                       HasSubstr("--api-key-file"), Not(HasSubstr("hush"))));
  EXPECT_THAT(resolved.notes[1], AllOf(HasSubstr("flag --admin-key"), Not(HasSubstr("hush"))));
  EXPECT_THAT(resolve_settings({.environment = {{"SHOAL_API_KEY", "sk-hush"}}}).notes, IsEmpty());
}

TEST(Secrets, NoMessageHoldsAKey) {
  const TemporaryFolder dir;
  for (const char* line :
       {"api_key = hush", "api_key = \"hush\" hush", "api_key = [\"hush\"]", "api_key \"hush\"",
        "'api_key' = hush", "admin_key = \"hush\\q\"", "api_key = \"hush hush\"", "x.admin_key = 'hush'",
        "[api_key.hush]", "api_key = 'a'\napi_key = 'hush'", "api_key = 'hush'\nadmin_key = 'hush'",
        "api_key = 'hush\xff'"}) {
    dir.write("a.toml", line);
    try {
      resolve_settings({.toml_path = dir.path("a.toml")});
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), AllOf(Not(HasSubstr("hush")), HasSubstr("a.toml:"))) << line;
    }
  }
}

}  // namespace
}  // namespace shoal
