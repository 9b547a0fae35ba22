#include "cli/player.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/nearest.h"

namespace shoal::cli {
namespace {

constexpr std::string_view kRate = "{rate}";

std::vector<std::string> player_names() {
  std::vector<std::string> names;
  for (const Player& player : known_players()) names.emplace_back(player.name);
  return names;
}

std::string joined_names() {
  std::string list;
  for (const std::string& name : player_names()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

bool has_what_it_needs(const Player& player, const Surroundings& machine) {
  if (player.variable.empty() && player.path.empty()) return true;
  const std::string folder = player.variable.empty() ? "" : machine.variable(std::string(player.variable));
  if (!player.variable.empty() && folder.empty()) return false;
  return machine.exists(folder + std::string(player.path));
}

// Whether $PATH has an executable of this name.
bool is_in_path(std::string_view program) {
  const char* const path = std::getenv("PATH");
  std::string_view folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!folders.empty()) {
    const size_t colon = std::min(folders.find(':'), folders.size());
    const std::string file = concat(folders.substr(0, colon), "/", program);
    if (colon > 0 && is_regular_file(file) && access(file.c_str(), X_OK) == 0) return true;
    folders.remove_prefix(std::min(colon + 1, folders.size()));
  }
  return false;
}

}  // namespace

Surroundings this_machine() {
  return {.has_program = is_in_path,
          .exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; },
          .variable =
              [](const std::string& name) {
                const char* const value = std::getenv(name.c_str());
                return std::string(value ? value : "");
              }};
}

// From their manuals. pw-play reads a pipe differently from version to version, but a file always.
const std::vector<Player>& known_players() {
  using enum Player::Takes;
  static const std::vector<Player> players = {
      {"paplay",
       {"--raw", "--format=s16le", "--channels=1", "--rate={rate}", "--client-name=Shoal"},
       samples,
       "XDG_RUNTIME_DIR",
       "/pulse/native"},
      {"pw-play", {}, file, "XDG_RUNTIME_DIR", "/pipewire-0"},
      {"aplay", {"-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "{rate}", "-"}, samples, "", "/dev/snd"},
      {"ffplay", {"-nodisp", "-autoexit", "-loglevel", "error", "-i", "pipe:0"}, wav, "", ""},
      {"play",
       {"-q", "-t", "raw", "-e", "signed", "-b", "16", "-L", "-c", "1", "-r", "{rate}", "-"},
       samples,
       "",
       ""},
      {"mpv", {"--no-video", "--really-quiet", "-"}, wav, "", ""},
  };
  return players;
}

const Player& choose_player(const std::string& wanted, const Surroundings& machine) {
  const std::vector<Player>& all = known_players();
  const auto is_here = [&](const Player& player) { return machine.has_program(player.name); };
  if (!wanted.empty()) {
    const auto named = std::ranges::find(all, wanted, &Player::name);
    if (named == all.end())
      fail(ErrorCode::invalid_argument, "player: expected one of ", joined_names(), ", got \"",
           printable(wanted), "\"", did_you_mean(wanted, player_names()));
    if (!is_here(*named))
      fail(ErrorCode::not_found, "player: there is no program ", wanted,
           " here; install it, or give -o FILE");
    return *named;
  }
  const auto can_play = [&](const Player& player) {
    return is_here(player) && has_what_it_needs(player, machine);
  };
  if (const auto able = std::ranges::find_if(all, can_play); able != all.end()) return *able;
  if (const auto first = std::ranges::find_if(all, is_here); first != all.end()) return *first;
  fail(ErrorCode::not_found, "output: no program is here that plays sound (one of ", joined_names(),
       "): give -o FILE, or install one, such as alsa-utils with aplay");
}

std::vector<std::string> arguments_of(const Player& player, int sample_rate_hz, const std::string& file) {
  std::vector<std::string> arguments = {std::string(player.name)};
  for (const std::string_view argument : player.arguments) {
    std::string text(argument);
    if (const size_t at = text.find(kRate); at != std::string::npos)
      text.replace(at, kRate.size(), std::to_string(sample_rate_hz));
    arguments.push_back(std::move(text));
  }
  if (player.takes == Player::Takes::file) arguments.push_back(file);
  return arguments;
}

}  // namespace shoal::cli
