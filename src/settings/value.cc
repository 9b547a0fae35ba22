#include "settings/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>

#include "base/error.h"

namespace shoal::settings {
namespace {

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

std::optional<bool> parse_boolean(std::string_view text) {
  for (const std::string_view yes : {"true", "1", "on", "yes"})
    if (equal_ignoring_case(text, yes)) return true;
  for (const std::string_view no : {"false", "0", "off", "no"})
    if (equal_ignoring_case(text, no)) return false;
  return std::nullopt;
}

template <typename T>
std::optional<T> parse_whole(std::string_view text, std::string_view range) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range && !range.empty())
    fail(ErrorCode::invalid_argument, "expected ", range, ", got ", printable(text));
  if (error != std::errc{}) return std::nullopt;
  return value;
}

std::string quoted_toml(const std::string& text) {
  if (!is_utf8(text)) fail(ErrorCode::invalid_argument, "a TOML file cannot hold it: it is not UTF-8");
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04X", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Always with a point or an exponent: a TOML float, not an integer.
std::string number_toml(double value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string_view name_of(Type type) {
  switch (type) {
    case Type::boolean:
      return "true or false";
    case Type::integer:
      return "integer";
    case Type::number:
      return "number";
    case Type::text:
      return "text";
  }
  return "text";
}

Value parse_value(Type type, std::string_view text, std::string_view range) {
  switch (type) {
    case Type::boolean:
      if (const auto value = parse_boolean(text)) return *value;
      break;
    case Type::integer:
      if (const auto value = parse_whole<int64_t>(text, range)) return *value;
      break;
    case Type::number:
      if (const auto value = parse_whole<double>(text, range)) return *value;
      break;
    case Type::text:
      return std::string(text);
  }
  fail(ErrorCode::invalid_argument, "expected ",
       type == Type::integer  ? "an "
       : type == Type::number ? "a "
                              : "",
       name_of(type), ", got \"", printable(text), "\"");
}

std::string shown(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? concat('"', printable(*text), '"') : to_toml(value);
}

std::string to_toml(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return number_toml(*number);
  return quoted_toml(std::get<std::string>(value));
}

}  // namespace shoal::settings
