// A request body as a tree of values, independent of its format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace shoal::server {

// MessagePack's bin, a file of a form; JSON has none (its schema fields take base64).
struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};

struct Value {
  using Array = std::vector<Value>;
  using Object = std::vector<std::pair<std::string, Value>>;  // names are unique
  // Texts are valid UTF-8. Numbers are finite.
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Bytes, Array, Object> data = nullptr;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  bool is_null() const { return as<std::nullptr_t>() != nullptr; }
  const Value* find(std::string_view name) const;  // member of an object; nullptr without
  bool operator==(const Value&) const = default;
};

// For answers: unknown texts are null, not "".
inline Value text_or_null(const std::string& text) { return text.empty() ? Value{} : Value{text}; }

// An error in a body, with its place.
class BodyError : public Error {
 public:
  // `where`: path of the field ("references[1].audio"), empty for the body as a whole.
  BodyError(ErrorCode code, std::string where, std::string message)
      : Error(code, where.empty() ? message : where + ": " + message), where_(std::move(where)) {}
  const std::string& where() const { return where_; }

 private:
  std::string where_;
};

// Limits of every reader: nesting, and values in all, so that a small body cannot become a large tree.
constexpr int kMaxDepth = 32;
constexpr int64_t kMaxValues = 1 << 20;

// Each throws BodyError(invalid_argument) that names the place where it happened: bad syntax with its offset,
// invalid UTF-8, too deep, too many values, a duplicate name, an integer that int64 cannot hold, a number
// that is not finite, bytes after the end. None allocates for a length before its bytes are there.
Value read_json(std::string_view body);
Value read_msgpack(std::string_view body);
// multipart/form-data: a file becomes Bytes, any other part a text; a repeated name becomes an Array of its
// parts. At most 256 of them. `boundary` as in the Content-Type, without quotes.
Value read_form(std::string_view body, std::string_view boundary);
// application/x-www-form-urlencoded: texts, with the names and the limits of read_form.
Value read_urlencoded(std::string_view body);
// By Content-Type, with its parameters. For other types throws BodyError(unsupported) (415) that lists the
// accepted ones.
Value read_body(std::string_view content_type, std::string_view body);

// The other way; texts must be UTF-8. Bytes become base64 in JSON.
std::string write_json(const Value& value);
std::string write_msgpack(const Value& value);

}  // namespace shoal::server
