// RFC 8259, strictly. An own reader, because a hostile body must be refused before it costs more than its own
// size (a parser that first indexes everything takes 12 times that), and because a number that does not fit
// has to be named by its field.
#include <charconv>
#include <cstring>

#include "base/printable.h"
#include "server/body/place.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes of a string that mean themselves, counted from the start of `text`.
size_t plain_bytes(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  const auto has_zero = [](uint64_t eight) { return (eight - kOnes) & ~eight & kHighs; };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    const uint64_t below_space = (eight - kOnes * 0x20) & ~eight & kHighs;
    if (below_space | has_zero(eight ^ kOnes * '"') | has_zero(eight ^ kOnes * '\\')) break;
  }
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; };
  while (at < text.size() && plain(text[at])) ++at;
  return at;
}

void append_utf8(std::string& out, uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    tail(12), tail(6), tail(0);
  }
}

class JsonReader {
 public:
  // RFC 8259 8.1: a byte order mark may be ignored.
  explicit JsonReader(std::string_view body) : body_(body), at_(body.starts_with("\xEF\xBB\xBF") ? 3 : 0) {}

  Value read() {
    const Place root;
    Value value = read_value(root);
    skip_space();
    if (at_ < body_.size()) fail_here(root, "the end");
    return value;
  }

 private:
  [[noreturn]] void fail_here(const Place& place, std::string_view expected) const {
    if (at_ >= body_.size()) fail_in(place, "not JSON: expected ", expected, ", found the end");
    fail_in(place, "not JSON: expected ", expected, " at byte ", at_, ", found \"",
            printable(body_.substr(at_, 1)), "\"");
  }

  void skip_space() {
    const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
    while (at_ < body_.size() && is_space(body_[at_])) ++at_;
  }

  char peek() const { return at_ < body_.size() ? body_[at_] : '\0'; }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  Value read_value(const Place& place) {
    limits_.count_value(place);
    skip_space();
    switch (peek()) {
      case '{':
        return {read_object(place)};
      case '[':
        return {read_array(place)};
      case '"':
        return {read_string(place)};
      case 't':
        return read_word(place, "true", {true});
      case 'f':
        return read_word(place, "false", {false});
      case 'n':
        return read_word(place, "null", {});
      default:
        if (peek() == '-' || is_digit(peek())) return read_number(place);
        fail_here(place, "a value");
    }
  }

  Value read_word(const Place& place, std::string_view word, Value meaning) {
    if (!body_.substr(at_).starts_with(word)) fail_here(place, "a value");
    at_ += word.size();
    return meaning;
  }

  Value::Array read_array(const Place& place) {
    TreeLimits::check_depth(place);
    Value::Array array;
    ++at_;
    skip_space();
    if (take(']')) return array;
    do {
      array.push_back(read_value(place.item(array.size())));
      skip_space();
    } while (take(','));
    if (!take(']')) fail_here(place, "\",\" or \"]\"");
    return array;
  }

  Value::Object read_object(const Place& place) {
    TreeLimits::check_depth(place);
    Value::Object object;
    ++at_;
    skip_space();
    if (take('}')) return object;
    do {
      skip_space();
      if (peek() != '"') fail_here(place, "a name in quotes");
      std::string name = read_string(place);
      skip_space();
      if (!take(':')) fail_here(place.member(name), "\":\"");
      Value value = read_value(place.member(name));
      object.emplace_back(std::move(name), std::move(value));
      skip_space();
    } while (take(','));
    if (!take('}')) fail_here(place, "\",\" or \"}\"");
    TreeLimits::check_names(object, place);
    return object;
  }

  std::string read_string(const Place& place) {
    const size_t start = at_++;
    std::string text;
    while (true) {
      const size_t plain = plain_bytes(body_.substr(at_));
      text += body_.substr(at_, plain);
      at_ += plain;
      if (take('"')) break;
      if (!take('\\')) fail_here(place, "the end of a text in quotes, without control characters in it");
      read_escape(place, text);
    }
    // Escapes are whole characters, and a quote or a backslash cannot stand inside one.
    if (!is_utf8(text)) fail_in(place, "expected UTF-8, found other bytes in the text at byte ", start);
    return text;
  }

  void read_escape(const Place& place, std::string& text) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const size_t which = at_ < body_.size() ? kLetters.find(body_[at_]) : std::string_view::npos;
    if (which != std::string_view::npos) {
      ++at_;
      text += kMeant[which];
      return;
    }
    if (!take('u')) fail_here(place, "an escape");
    uint32_t character = read_hex4(place);
    if (character >= 0xd800 && character < 0xdc00) {
      if (!take('\\') || !take('u')) fail_here(place, "the other half of a surrogate pair");
      const uint32_t low = read_hex4(place);
      if (low < 0xdc00 || low >= 0xe000) fail_here(place, "the other half of a surrogate pair before this");
      character = 0x10000 + ((character - 0xd800) << 10) + (low - 0xdc00);
    } else if (character >= 0xdc00 && character < 0xe000) {
      fail_here(place, "the first half of a surrogate pair before this");
    }
    append_utf8(text, character);
  }

  uint32_t read_hex4(const Place& place) {
    uint32_t value = 0;
    const std::string_view digits = body_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + 4) fail_here(place, "four hexadecimal digits");
    at_ += 4;
    return value;
  }

  void skip_digits(const Place& place) {
    if (!is_digit(peek())) fail_here(place, "a digit");
    while (is_digit(peek())) ++at_;
  }

  Value read_number(const Place& place) {
    const size_t start = at_;
    take('-');
    if (!take('0')) skip_digits(place);
    bool integer = true;
    if (take('.')) {
      integer = false;
      skip_digits(place);
    }
    if (take('e') || take('E')) {
      integer = false;
      if (!take('+')) take('-');
      skip_digits(place);
    }
    const std::string_view digits = body_.substr(start, at_ - start);
    return integer ? converted<int64_t>(place, digits, "an integer that 64 bits hold")
                   : converted<double>(place, digits, "a number that a double holds");
  }

  template <typename T>
  static Value converted(const Place& place, std::string_view digits, std::string_view expected) {
    T value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{}) fail_in(place, "expected ", expected, ", found ", printable(digits, 40));
    return {value};
  }

  std::string_view body_;
  size_t at_;
  TreeLimits limits_;
};

}  // namespace

Value read_json(std::string_view body) { return JsonReader(body).read(); }

}  // namespace shoal::server
