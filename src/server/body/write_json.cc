#include <array>
#include <charconv>
#include <cmath>

#include "base/base64.h"
#include "base/printable.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

class JsonWriter {
 public:
  void operator()(std::nullptr_t) { out_ += "null"; }
  void operator()(bool value) { out_ += value ? "true" : "false"; }
  void operator()(int64_t value) { out_ += std::to_string(value); }
  void operator()(double value) {
    CHECK(std::isfinite(value), "JSON has no ", value);
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
    const std::string_view text(digits.begin(), end);
    out_ += text;
    // So that it reads back as a double.
    if (text.find_first_of(".e") == std::string_view::npos) out_ += ".0";
  }
  void operator()(const std::string& text) {
    CHECK(is_utf8(text), "a text of ", text.size(), " bytes");
    out_ += '"';
    for (const char c : text) write_character(c);
    out_ += '"';
  }
  void operator()(const Bytes& bytes) {
    out_ += '"';
    append_base64(out_, bytes.data);
    out_ += '"';
  }
  void operator()(const Value::Array& array) {
    char before = '[';
    for (const Value& value : array) {
      out_ += std::exchange(before, ',');
      std::visit(*this, value.data);
    }
    out_ += array.empty() ? "[]" : "]";
  }
  void operator()(const Value::Object& object) {
    char before = '{';
    for (const auto& [name, value] : object) {
      out_ += std::exchange(before, ',');
      (*this)(name);
      out_ += ':';
      std::visit(*this, value.data);
    }
    out_ += object.empty() ? "{}" : "}";
  }

  std::string take() { return std::move(out_); }

 private:
  void write_character(char c) {
    constexpr std::string_view kHex = "0123456789abcdef";
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
    if (const size_t which = kShort.find(c); which != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[which];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out_ += "\\u00";
      out_ += kHex[static_cast<size_t>(c) >> 4];
      out_ += kHex[c & 0xf];
    } else {
      out_ += c;
    }
  }

  std::string out_;
};

}  // namespace

std::string write_json(const Value& value) {
  JsonWriter writer;
  std::visit(writer, value.data);
  return writer.take();
}

}  // namespace shoal::server
