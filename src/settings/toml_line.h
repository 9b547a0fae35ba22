// One line of a flat TOML file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settings/value.h"

namespace shoal::settings {

struct TomlLine {
  std::string key;
  Value value;
};

// `key = value` with a comment or without (TOML 1.0: bare and quoted keys; basic and literal strings;
// integers in four bases, floats, booleans), or nothing for a blank line. `line` is UTF-8 without its line
// break. Throws Error, without naming the place: corrupt_file where it is not TOML; invalid_argument for the
// rest of TOML, which no setting needs: tables, dotted keys, arrays, dates, strings of several lines.
std::optional<TomlLine> parse_toml_line(std::string_view line);

}  // namespace shoal::settings
