// Values that reports are made of.
#pragma once

#include <cmath>
#include <utility>

#include "base/printable.h"
#include "server/body/value.h"

namespace shoal::report {

using server::Value;
using Object = Value::Object;

template <typename Number>
Value count(Number number) {
  return {static_cast<int64_t>(number)};
}

inline Value number(double value) { return std::isfinite(value) ? Value{value} : Value{}; }

// From a file's name or content, so it need not be UTF-8.
inline Value foreign_text(const std::string& text) {
  return {is_utf8(text) ? text : printable(text, text.size())};
}
// Unknown texts are null.
inline Value text_or_null(const std::string& text) { return text.empty() ? Value{} : foreign_text(text); }

inline Value texts(const std::vector<std::string>& all) {
  Value::Array array;
  for (const std::string& text : all) array.push_back(foreign_text(text));
  return {std::move(array)};
}

inline void append(Object& members, Object more) {
  for (auto& member : more) members.push_back(std::move(member));
}

template <typename Integer>
Value counts(const std::vector<Integer>& all) {
  Value::Array array;
  for (const Integer each : all) array.push_back(count(each));
  return {std::move(array)};
}

}  // namespace shoal::report
