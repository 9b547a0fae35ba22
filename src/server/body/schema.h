// Bodies by their fields: one table reads a body into a struct and describes it for /openapi.json.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/body/value.h"

namespace shoal::server {

// How /openapi.json describes a field.
struct FieldDoc {
  std::string name;
  std::string type;  // of JSON: "string", "integer", "number", "boolean", "array", "object"
  std::string help;  // one sentence
  bool required = false;
  std::string format;  // "byte" for base64, ...
  std::optional<double> minimum, maximum;
  std::optional<int64_t> max_length;  // characters of a text, items of an array
  std::vector<std::string> one_of;
  std::string default_value;    // JSON; empty: none
  std::vector<FieldDoc> items;  // fields of the objects in an array, or of an object
  std::vector<FieldDoc> item;   // of an array of other values: one, which describes each of them
  std::vector<FieldDoc> forms;  // other forms that the value may have
};

// One field of a T.
template <typename T>
struct Field {
  FieldDoc doc;
  std::function<void(const Value& value, const std::string& where, T& into)> read;  // null is handled before

  Field required() && {
    doc.required = true;
    return std::move(*this);
  }
  Field otherwise(std::string json) && {  // says the default; the struct has it
    doc.default_value = std::move(json);
    return std::move(*this);
  }
};

struct Range {
  double low = std::numeric_limits<double>::lowest(), high = std::numeric_limits<double>::max();
};

// Fields. M may be the plain type or an optional of it; null and absence leave the member unchanged. Any
// other value that does not fit throws BodyError(invalid_argument) with the field, what was expected and what
// was found. Numbers and switches may be texts ("0.8", "true"), because forms can send nothing else.
template <typename T, typename M>
Field<T> integer(std::string name, M T::* member, Range range, std::string help);  // also 3.0
template <typename T, typename M>
Field<T> number(std::string name, M T::* member, Range range, std::string help);  // also 1
template <typename T, typename M>
Field<T> boolean(std::string name, M T::* member, std::string help);
template <typename T, typename M>
Field<T> text(std::string name, M T::* member, std::string help);
template <typename T, typename M>
Field<T> choice(std::string name, M T::* member, std::vector<std::string> words, std::string help);
// Bytes, base64 in a text, or a Buffer of Node in JSON.
template <typename T>
Field<T> bytes(std::string name, std::string T::* member, std::string help);
template <typename U>
class Schema;
template <typename T, typename U>
Field<T> list(std::string name, std::vector<U> T::* member, const Schema<U>& items, int64_t max_items,
              std::string help);
// A field that clients know but Shoal does not support: any value but null, false, "" and `neutral` is
// BodyError(unsupported) with the sentence `why`.
template <typename T>
Field<T> refused(std::string name, std::string type, std::string why, Value neutral = {});
// The same, but accepted: "name: why" is added to the T's `unused`.
template <typename T>
Field<T> unused(std::string name, std::string type, std::string why, Value neutral = {});

template <typename T>
class Schema {
 public:
  Schema(std::initializer_list<Field<T>> fields) : fields_(fields) {}
  explicit Schema(std::vector<Field<T>> fields) : fields_(std::move(fields)) {}

  // Throws BodyError: not an object; a missing required field; an unknown name, with the closest known one;
  // the errors of the fields. `where` is prefixed to the names.
  T read(const Value& value, const std::string& where = "") const { return read_onto(T{}, value, where); }
  // The same, over other defaults.
  T read_onto(T into, const Value& value, const std::string& where = "") const;
  std::vector<FieldDoc> docs() const;

 private:
  std::vector<Field<T>> fields_;
};

}  // namespace shoal::server

#include "server/body/schema_fields.h"  // the definitions
