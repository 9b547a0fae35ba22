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

// Parses `key = value` with or without a comment (TOML 1.0: bare and quoted keys; basic and literal strings;
// integers in four bases, floats, booleans); a blank line gives nothing. `line` is UTF-8 without its line
// break. Throws Error, without the place: corrupt_file for invalid TOML; invalid_argument for TOML that no
// setting needs: tables, dotted keys, arrays, dates, multi-line strings.
std::optional<TomlLine> parse_toml_line(std::string_view line);

}  // namespace shoal::settings
