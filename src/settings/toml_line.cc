#include "settings/toml_line.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "settings/table.h"

namespace shoal::settings {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_bare_key(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

template <typename... Parts>
[[noreturn]] void not_toml(const Parts&... parts) {
  fail(ErrorCode::corrupt_file, "not TOML: ", parts...);
}

template <typename... Parts>
[[noreturn]] void not_flat(const Parts&... parts) {
  fail(ErrorCode::invalid_argument, parts..., "; a setting is one key = value on one line");
}

// A number that no value can hold.
struct TooLarge {};

// Digits of `base` with single underscores between them, which are removed. Empty: no digits, or an
// underscore in a wrong place.
std::string digits_of(std::string_view text, int base) {
  const auto is_one = [&](char c) {
    const int digit = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 99;
    return digit < base;
  };
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && i > 0 && i + 1 < text.size() && is_one(text[i - 1]) && is_one(text[i + 1]))
      continue;
    if (!is_one(text[i])) return "";
    digits += text[i];
  }
  return digits;
}

std::optional<Value> integer_in(const std::string& digits, int base) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error == std::errc::result_out_of_range) throw TooLarge();
  return Value(value);
}

// No zero before other digits.
bool is_decimal(const std::string& digits) {
  return !digits.empty() && (digits.size() == 1 || digits[0] != '0');
}

// `text` without its sign: 6.5, 6e3, 6.5e-3, inf, nan.
std::optional<Value> float_in(std::string_view text, const std::string& sign) {
  const double minus = sign == "-" ? -1 : 1;
  if (text == "inf") return Value(minus * std::numeric_limits<double>::infinity());
  if (text == "nan") return Value(std::numeric_limits<double>::quiet_NaN());
  const size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, exponent_at);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  std::string plain = digits_of(mantissa.substr(0, point), 10);
  if (!is_decimal(plain)) return std::nullopt;
  if (point < mantissa.size()) {
    const std::string fraction = digits_of(mantissa.substr(point + 1), 10);
    if (fraction.empty()) return std::nullopt;
    plain += "." + fraction;
  }
  if (exponent_at < text.size()) {
    std::string_view exponent = text.substr(exponent_at + 1);
    const bool negative = exponent.starts_with('-');
    if (negative || exponent.starts_with('+')) exponent.remove_prefix(1);
    const std::string digits = digits_of(exponent, 10);
    if (digits.empty()) return std::nullopt;
    plain += (negative ? "e-" : "e") + digits;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc{}) throw TooLarge();
  return Value(minus * value);
}

std::optional<Value> number_in(std::string_view text) {
  for (const auto& [prefix, base] : {std::pair{"0x", 16}, {"0o", 8}, {"0b", 2}}) {
    if (!text.starts_with(prefix)) continue;
    const std::string digits = digits_of(text.substr(2), base);
    return digits.empty() ? std::nullopt : integer_in(digits, base);
  }
  const std::string sign(text.substr(0, text.starts_with('-') || text.starts_with('+')));
  text.remove_prefix(sign.size());
  const std::string digits = digits_of(text, 10);
  if (is_decimal(digits)) return integer_in((sign == "-" ? "-" : "") + digits, 10);
  return float_in(text, sign);
}

// 1979-05-27, 07:32:00 and what begins like them.
bool looks_like_a_date(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return (digits == 4 && text.substr(4, 1) == "-") || (digits == 2 && text.substr(2, 1) == ":");
}

void append_utf8(std::string& out, uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Reads the line from left to right.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  std::optional<TomlLine> read() {
    skip_blanks();
    if (at_end()) return std::nullopt;
    if (rest_[0] == '[') not_flat("\"", printable(rest_), "\" opens a table");
    TomlLine line{.key = key(), .value = {}};
    skip_blanks();
    if (rest_.starts_with('.')) not_flat("\"", printable(line.key), "\" is a dotted key");
    if (!rest_.starts_with('=')) not_toml("expected = after \"", printable(line.key), "\"");
    rest_.remove_prefix(1);
    skip_blanks();
    line.value = value(line.key);
    skip_blanks();
    if (!at_end()) not_toml("\"", printable(rest_), "\" follows the value of \"", printable(line.key), "\"");
    return line;
  }

 private:
  bool at_end() const { return rest_.empty() || rest_[0] == '#'; }
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }
  std::string_view take(size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string key() {
    if (rest_[0] == '"' || rest_[0] == '\'') return quoted();
    const auto end = std::ranges::find_if_not(rest_, is_bare_key);
    if (end == rest_.begin()) not_toml("expected a key, got \"", printable(rest_), "\"");
    return std::string(take(static_cast<size_t>(end - rest_.begin())));
  }

  Value value(const std::string& key) {
    if (at_end()) not_toml("expected a value for \"", printable(key), "\"");
    if (rest_[0] == '"' || rest_[0] == '\'') return quoted();
    if (rest_[0] == '[') not_flat("\"", printable(key), "\" is an array");
    if (rest_[0] == '{') not_flat("\"", printable(key), "\" is a table");
    const std::string_view word = take(std::min(rest_.find_first_of(" \t#"), rest_.size()));
    if (word == "true" || word == "false") return word == "true";
    if (looks_like_a_date(word)) not_flat("\"", printable(key), "\" is a date or time");
    if (const std::optional<Value> number = number_or_error(key, word)) return *number;
    not_toml("\"", printable(word), "\" is no value; texts stand in quotes");
  }

  static std::optional<Value> number_or_error(const std::string& key, std::string_view word) {
    try {
      return number_in(word);
    } catch (const TooLarge&) {
      const Row* row = find_row(key);
      if (!row || row->range().empty()) not_toml(printable(word), ": no number is so large or so small");
      fail(ErrorCode::invalid_argument, key, ": expected ", row->range(), ", got ", printable(word));
    }
  }

  std::string quoted() {
    const char quote = rest_[0];
    if (rest_.substr(0, 3) == std::string(3, quote)) not_flat("the text may be on several lines");
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_[0] != quote) {
      if (quote == '"' && rest_[0] == '\\') {
        append_utf8(text, escaped());
      } else {
        text += take(1);
      }
    }
    if (rest_.empty()) not_toml("a text has no closing ", quote);
    rest_.remove_prefix(1);
    return text;
  }

  // The character after a backslash.
  uint32_t escaped() {
    constexpr std::string_view kLetters = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
    const std::string_view escape = take(2);
    const char letter = escape.size() == 2 ? escape[1] : '\0';
    if (const size_t at = kLetters.find(letter); at != std::string_view::npos)
      return static_cast<unsigned char>(kMeanings[at]);
    const size_t count = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    const std::string_view digits = take(count);
    uint32_t c = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), c, 16);
    const bool complete =
        count > 0 && digits.size() == count && error == std::errc{} && end == digits.data() + count;
    if (!complete || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
      not_toml("\"", printable(escape), printable(digits), "\" is no escape");
    return c;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<TomlLine> parse_toml_line(std::string_view line) { return LineReader(line).read(); }

}  // namespace shoal::settings
