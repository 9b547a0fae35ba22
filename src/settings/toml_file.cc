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

// NAME of a line "[workers.NAME]"; nothing: another line.
std::optional<std::string> section_in(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  constexpr std::string_view kStart = "[workers.";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  if (!line.starts_with(kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  const size_t end =
      line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
  if (end == 0 || end == std::string_view::npos || line[end] != ']') return std::nullopt;
  const size_t after = line.find_first_not_of(kBlanks, end + 1);
  if (after != std::string_view::npos && line[after] != '#') return std::nullopt;
  return std::string(line.substr(0, end));
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
  std::map<std::string, int> lines;  // of sections and keys
  std::string worker;
  int number = 1;
  const auto stands_here = [&](const std::string& what, const std::string& as_written) {
    const auto [first, is_new] = lines.emplace(what, number);
    if (!is_new)
      fail(ErrorCode::corrupt_file, "not TOML: \"", printable(as_written), "\" stands in line ",
           first->second, " too");
  };
  for (; !text.empty(); ++number) {
    const std::string_view line = next_line(text);
    try {
      check_characters(line);
      if (const std::optional<std::string> section = section_in(line)) {
        worker = *section;
        stands_here("[" + worker, "workers." + worker);
      } else if (const std::optional<TomlLine> said = parse_line(line)) {
        stands_here(concat(worker, "]", said->key), said->key);
        entries.push_back({worker, said->key, said->value, number});
      }
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
