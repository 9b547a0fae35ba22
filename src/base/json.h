// Read-only JSON documents: configurations, file headers, tokenizers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shoal {

// For Json::read_file of a configuration; published ones have a few KB.
constexpr int64_t kMaxConfigBytes = int64_t{1} << 20;

// A parsed value. Objects keep the order of the file (special-token ids depend on it) and refuse duplicate
// keys. Wrong kinds and missing keys throw Error(invalid_argument) with the path of the value ("config.json:
// text_config.dim").
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  // Parses a whole document. `name` is used in messages (a file name). Throws Error(corrupt_file) for bad
  // syntax, invalid UTF-8, nesting deeper than 64, duplicate keys or trailing bytes.
  static Json parse(std::string_view text, std::string_view name);
  // Reads and parses a file of at most `max_bytes`; a document can take forty times its text in memory.
  // Throws not_found, invalid_argument (not a regular file), too_large, io, corrupt_file.
  static Json read_file(const std::string& path, int64_t max_bytes);

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  bool as_bool() const;
  int64_t as_integer() const;  // an integral number, also written 3.0
  double as_number() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;

  // Member of an object, or nullptr when absent. Linear search: for tables, walk as_object() once.
  const Json* find(std::string_view key) const;
  // Member that must be there.
  const Json& at(std::string_view key) const;

  // The path of this value, for messages: "config.json: layers[3].dim". Long keys and paths are cut, so that
  // a hostile file cannot choose the size of a message.
  std::string where() const;

 private:
  friend class JsonBuilder;
  struct Places;

  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> value_;
  std::shared_ptr<const Places> places_;  // of the whole document; none for a default-constructed value
  uint32_t container_ = 0;                // which container of the document holds this value
  uint32_t step_ = 0;                     // its index there, or where its key is written down
};

}  // namespace shoal
