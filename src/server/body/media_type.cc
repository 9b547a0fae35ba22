#include "server/body/media_type.h"

#include <algorithm>

namespace shoal::server {
namespace {

// RFC 9110 5.6.2.
bool is_token_character(char c) {
  const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return alphanumeric || (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

// With the slash of types.
std::string_view take_token(std::string_view& rest) {
  const auto end = std::ranges::find_if_not(rest, [](char c) { return c == '/' || is_token_character(c); });
  const std::string_view token = rest.substr(0, static_cast<size_t>(end - rest.begin()));
  rest.remove_prefix(token.size());
  return token;
}

// `rest` begins after the quote.
std::optional<std::string> take_quoted(std::string_view& rest) {
  std::string value;
  while (!rest.empty()) {
    const char c = rest[0];
    rest.remove_prefix(1);
    if (c == '"') return value;
    const bool escaped = c == '\\' && !rest.empty() && (rest[0] == '"' || rest[0] == '\\');
    value += escaped ? rest[0] : c;
    if (escaped) rest.remove_prefix(1);
  }
  return std::nullopt;
}

// Up to the next parameter. Not only a token: there are clients that put boundaries like ===1== without
// quotes.
std::optional<std::string> take_plain(std::string_view& rest) {
  const std::string_view value = rest.substr(0, rest.find_first_of("; \t\""));
  rest.remove_prefix(value.size());
  if (value.empty()) return std::nullopt;
  return std::string(value);
}

bool take(std::string_view& rest, char c) {
  if (!rest.starts_with(c)) return false;
  rest.remove_prefix(1);
  return true;
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool lists(std::string_view field, std::string_view word) {
  return any_part(field, [&](std::string_view part) {
    const std::optional<MediaType> item = parse_media_type(part);
    if (!item || item->value != to_lower(word)) return false;
    const std::string* weight = item->find("q");
    return !weight || weight->find_first_of("123456789") != std::string::npos;
  });
}

const std::string* MediaType::find(std::string_view name) const {
  const auto found = std::ranges::find(parameters, name, &std::pair<std::string, std::string>::first);
  return found == parameters.end() ? nullptr : &found->second;
}

bool MediaType::is_utf8() const {
  const std::string* charset = find("charset");
  return !charset || to_lower(*charset) == "utf-8" || to_lower(*charset) == "utf8";
}

std::optional<MediaType> parse_media_type(std::string_view text) {
  text = trimmed(text);
  MediaType type;
  type.value = to_lower(take_token(text));
  if (type.value.empty()) return std::nullopt;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    if (!take(text, ';')) return std::nullopt;
    text = trimmed(text);
    if (text.empty() || text[0] == ';') continue;
    std::string name = to_lower(take_token(text));
    if (name.empty() || type.find(name) || !take(text, '=')) return std::nullopt;
    std::optional<std::string> value;
    if (take(text, '"'))
      value = take_quoted(text);
    else
      value = take_plain(text);
    if (!value) return std::nullopt;
    type.parameters.emplace_back(std::move(name), std::move(*value));
  }
  return type;
}

}  // namespace shoal::server
