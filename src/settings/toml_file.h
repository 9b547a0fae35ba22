// A configuration file: flat TOML, one setting to a line, and sections of workers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "settings/value.h"

namespace shoal::settings {

struct FileEntry {
  std::string worker = {};  // whose section [workers.NAME] it stands in; empty: none
  std::string key;
  Value value;
  int line = 0;  // from 1
};

// Every key of the file in its order. Throws Error naming "NAME:LINE": the Errors of parse_toml_line, and
// corrupt_file for bytes that are not UTF-8, control characters, duplicate keys and sections.
std::vector<FileEntry> parse_toml(std::string_view text, std::string_view name);

// The same of a file. Throws Error also not_found, io and too_large (over 1 MiB).
std::vector<FileEntry> read_toml(const std::string& path);

}  // namespace shoal::settings
