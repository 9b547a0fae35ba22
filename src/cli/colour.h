// Colour on terminals that want it.
#pragma once

#include <string>
#include <string_view>

namespace shoal::cli {

enum class Colour { bold, red, green, yellow };

// Whether the descriptor is a terminal with colours, and NO_COLOR (no-color.org) is unset or empty.
bool wants_colour(int descriptor);

// `text` in the colour if the descriptor wants it, else as it is.
std::string in_colour(std::string_view text, Colour colour, int descriptor);

}  // namespace shoal::cli
