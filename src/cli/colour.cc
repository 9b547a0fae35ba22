#include "cli/colour.h"

#include <cstdlib>
#include <unistd.h>

#include "base/error.h"

namespace shoal::cli {

bool wants_colour(int descriptor) {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  if ((refused && *refused) || !terminal || !*terminal || std::string_view(terminal) == "dumb") return false;
  return isatty(descriptor) == 1;
}

std::string in_colour(std::string_view text, Colour colour, int descriptor) {
  if (!wants_colour(descriptor)) return std::string(text);
  constexpr const char* kCodes[] = {"1", "1;31", "32", "33"};  // in the order of Colour
  return concat("\033[", kCodes[static_cast<int>(colour)], "m", text, "\033[0m");
}

}  // namespace shoal::cli
