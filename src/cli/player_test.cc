#include "cli/player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "base/error.h"

namespace shoal::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Names = std::set<std::string, std::less<>>;

Surroundings machine_with(const Names& programs, const Names& paths) {
  return {.has_program = [programs](std::string_view program) { return programs.contains(program); },
          .exists = [paths](const std::string& path) { return paths.contains(path); },
          .variable = [](const std::string& name) { return name == "XDG_RUNTIME_DIR" ? "/run/user/1" : ""; }};
}

std::string refusal_of(const std::string& wanted, const Surroundings& machine) {
  try {
    return std::string(choose_player(wanted, machine).name) + " was chosen";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(Player, IsTheFirstThatFindsItsSoundServerOrCard) {
  const Names all = {"paplay", "pw-play", "aplay", "ffplay", "play", "mpv"};
  EXPECT_EQ(choose_player("", machine_with(all, {"/run/user/1/pulse/native", "/dev/snd"})).name, "paplay");
  EXPECT_EQ(choose_player("", machine_with(all, {"/run/user/1/pipewire-0", "/dev/snd"})).name, "pw-play");
  EXPECT_EQ(choose_player("", machine_with(all, {"/dev/snd"})).name, "aplay");
  EXPECT_EQ(choose_player("", machine_with(all, {})).name, "ffplay");
  EXPECT_EQ(choose_player("", machine_with({"aplay"}, {})).name, "aplay") << "it may know more than we";
  Surroundings bare = machine_with(all, {"/pulse/native"});
  bare.variable = [](const std::string&) { return ""; };
  EXPECT_EQ(choose_player("", bare).name, "ffplay");
}

TEST(Player, IsTheOneThatIsNamed) {
  const Surroundings machine = machine_with({"aplay", "mpv"}, {"/dev/snd"});
  EXPECT_EQ(choose_player("mpv", machine).name, "mpv");
  EXPECT_THAT(refusal_of("paplay", machine), HasSubstr("there is no program paplay here"));
  EXPECT_THAT(refusal_of("aplya", machine), HasSubstr("did you mean aplay?"));
  EXPECT_THAT(refusal_of("rm", machine), HasSubstr("expected one of paplay"));
  EXPECT_THAT(refusal_of("", machine_with({}, {"/dev/snd"})), HasSubstr("give -o FILE, or install one"));
}

TEST(Player, GetsTheSampleRateAndTheFile) {
  const Surroundings machine = machine_with({"aplay", "pw-play"}, {});
  EXPECT_THAT(arguments_of(choose_player("aplay", machine), 24000),
              ElementsAre("aplay", "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "24000", "-"));
  EXPECT_THAT(arguments_of(choose_player("pw-play", machine), 24000, "/tmp/a.wav"),
              ElementsAre("pw-play", "/tmp/a.wav"));
}

}  // namespace
}  // namespace shoal::cli
