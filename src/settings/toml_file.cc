#include "settings/toml_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

// Errors as results: nothing of the parser leaves this file.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace shoal::settings {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;
// toml++ 3.3 bounds the nesting of arrays and inline tables, but a.b.c... makes one table for each dot, and
// frees them by recursion: a megabyte of dots overflows the stack. Settings need no dotted keys at all.
constexpr ptrdiff_t kMaxDots = 4096;

// Every dot that can nest a table; lines of comment have none.
ptrdiff_t count_dots(std::string_view text) {
  ptrdiff_t dots = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line[first] != '#')
      dots += std::count(line.begin(), line.end(), '.');
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return dots;
}

std::string_view found_in(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

std::optional<Value> value_in(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  return std::nullopt;
}

}  // namespace

std::vector<FileEntry> parse_toml(std::string_view text, std::string_view name) {
  const std::string place = printable(name, 4096);
  if (count_dots(text) > kMaxDots) {
    fail(ErrorCode::corrupt_file, place, ": more than ", kMaxDots,
         " dots outside of comments; settings are not nested");
  }
  const toml::parse_result result = toml::parse(text, name);
  if (!result) {
    fail(ErrorCode::corrupt_file, place, ":", result.error().source().begin.line,
         ": not TOML: ", printable(result.error().description()));
  }
  std::vector<FileEntry> entries;
  for (const auto& [key, node] : result.table()) {
    entries.push_back({.key = std::string(key.str()),
                       .value = value_in(node),
                       .found = found_in(node),
                       .line = static_cast<int>(key.source().begin.line)});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const FileEntry& a, const FileEntry& b) { return a.line < b.line; });
  return entries;
}

std::vector<FileEntry> read_toml(const std::string& path) {
  return parse_toml(read_file(path, kMaxBytes), path);
}

}  // namespace shoal::settings
