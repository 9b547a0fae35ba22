// A configuration file as a flat list of what it says.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings/value.h"

namespace shoal::settings {

struct FileEntry {
  std::string key;
  std::optional<Value> value;  // none: an array, a table, a date
  std::string_view found;      // "a text", "an integer", "an array", ... for messages
  int line = 0;                // from 1
};

// The top level of a TOML file, in the order of its lines. Throws Error: not_found, io, too_large (over 1
// MiB), corrupt_file ("NAME:LINE: ..." where it is not TOML, or is nested beyond reason).
std::vector<FileEntry> read_toml(const std::string& path);

// The same of text that is already in memory; `name` stands in messages.
std::vector<FileEntry> parse_toml(std::string_view text, std::string_view name);

}  // namespace shoal::settings
