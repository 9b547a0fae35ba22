#include "settings/toml_file.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "settings/table.h"
#include "settings/toml_line.h"

namespace shoal::settings {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Cuts the next line off `text`, without its line break.
std::string_view next_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  const bool has_break = line.size() < text.size();
  text.remove_prefix(line.size() + has_break);
  if (has_break && line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void check_characters(std::string_view line) {
  if (!is_utf8(line)) fail(ErrorCode::corrupt_file, "not TOML: the line is not UTF-8");
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  };
  if (std::ranges::any_of(line, is_control))
    fail(ErrorCode::corrupt_file, "not TOML: the line has a control character");
}

// As parse_toml_line, but messages do not contain a line that may hold a secret.
std::optional<TomlLine> parse_line(std::string_view line) {
  try {
    return parse_toml_line(line);
  } catch (const Error& error) {
    const auto is_named = [&](const Row& row) {
      return row.allowed.secret && line.find(row.key) != std::string_view::npos;
    };
    if (std::ranges::none_of(rows(), is_named)) throw;
    fail(error.code(), "expected name = \"text\"; the line is not shown, because a key may stand in it");
  }
}

}  // namespace

std::vector<FileEntry> parse_toml(std::string_view text, std::string_view name) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<FileEntry> entries;
  std::map<std::string, int> lines;  // by key
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = next_line(text);
    try {
      check_characters(line);
      const std::optional<TomlLine> said = parse_line(line);
      if (!said) continue;
      const auto [first, is_new] = lines.emplace(said->key, number);
      if (!is_new)
        fail(ErrorCode::corrupt_file, "not TOML: \"", printable(said->key), "\" stands in line ",
             first->second, " too");
      entries.push_back({said->key, said->value, number});
    } catch (const Error& error) {
      fail(error.code(), printable(name, kMaxPath), ":", number, ": ", error.message());
    }
  }
  return entries;
}

std::vector<FileEntry> read_toml(const std::string& path) {
  return parse_toml(read_file(path, kMaxBytes), path);
}

}  // namespace shoal::settings
