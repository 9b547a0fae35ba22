// Programs of this machine that play sound.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::cli {

struct Player {
  std::string_view name;
  // "{rate}" is the sample rate in Hz. The sound comes last: 16-bit mono samples or a WAV, on standard input
  // or as a file.
  std::vector<std::string_view> arguments;
  enum class Takes { samples, wav, file } takes = Takes::samples;
  // The socket or folder without which it cannot play: variable, then path below it. No variable: none is
  // needed.
  std::string_view variable, path;
};

// What there is on the machine.
struct Surroundings {
  std::function<bool(std::string_view program)> has_program;
  std::function<bool(const std::string& path)> exists;
  std::function<std::string(const std::string& variable)> variable;
};
Surroundings this_machine();

// In the order in which they are tried.
const std::vector<Player>& known_players();

// `wanted`, or if that is empty the first known player that is installed and finds what it needs, else the
// first that is installed. Throws Error: invalid_argument (none of the known), not_found (not installed; no
// player at all), each with what to do.
const Player& choose_player(const std::string& wanted, const Surroundings& machine);

// Its arguments for a sound; `file` for Takes::file.
std::vector<std::string> arguments_of(const Player& player, int sample_rate_hz, const std::string& file = "");

}  // namespace shoal::cli
