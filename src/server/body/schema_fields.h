// The definitions of schema.h, and the readings of one value that a field made by hand may use.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "server/body/place.h"
#include "server/body/schema.h"

namespace shoal::server {

// Each throws BodyError(invalid_argument, where) with what was expected and found.
int64_t read_integer(const Value& value, const std::string& where, Range range);
double read_number(const Value& value, const std::string& where, Range range);
bool read_boolean(const Value& value, const std::string& where);
const std::string& read_text(const Value& value, const std::string& where);
const std::string& read_choice(const Value& value, const std::string& where,
                               const std::vector<std::string>& words);
std::string read_bytes(const Value& value, const std::string& where);  // base64 or Node's Buffer in JSON
// `max_items` < 0: any number.
const Value::Array& read_array(const Value& value, const std::string& where, int64_t max_items);
const Value::Object& read_object(const Value& value, const std::string& where);
// Whether the value is null, false, "" or `neutral`.
bool says_nothing(const Value& value, const Value& neutral);
// BodyError(unsupported) with `why` unless the value is neutral.
void refuse(const Value& value, const std::string& where, const std::string& why, const Value& neutral);

[[noreturn]] void fail_missing(const std::string& where, std::string_view name);
[[noreturn]] void fail_unknown(const std::string& where, std::string_view name,
                               const std::vector<std::string>& known);

namespace detail {

FieldDoc doc_of(std::string name, std::string type, std::string help, Range range = {});

template <typename M>
struct plain_type {
  using type = M;
};
template <typename M>
struct plain_type<std::optional<M>> {
  using type = M;
};
template <typename M>
using plain = typename plain_type<M>::type;

// What `range` and M can both hold. A bound that M rounds away from itself (2^63 - 1 as a double) is checked
// again after the conversion.
template <typename M>
Range within(Range range) {
  return {std::max(range.low, static_cast<double>(std::numeric_limits<M>::lowest())),
          std::min(range.high, static_cast<double>(std::numeric_limits<M>::max()))};
}

}  // namespace detail

template <typename T, typename M>
Field<T> integer(std::string name, M T::* member, Range range, std::string help) {
  using Plain = detail::plain<M>;
  static_assert(std::is_integral_v<Plain> && !std::is_same_v<Plain, bool>);
  return {detail::doc_of(std::move(name), "integer", std::move(help), range),
          [member, range](const Value& value, const std::string& where, T& into) {
            into.*member = static_cast<Plain>(read_integer(value, where, detail::within<Plain>(range)));
          }};
}

template <typename T, typename M>
Field<T> number(std::string name, M T::* member, Range range, std::string help) {
  using Plain = detail::plain<M>;
  static_assert(std::is_floating_point_v<Plain>);
  return {detail::doc_of(std::move(name), "number", std::move(help), range),
          [member, range](const Value& value, const std::string& where, T& into) {
            into.*member = static_cast<Plain>(read_number(value, where, detail::within<Plain>(range)));
          }};
}

template <typename T, typename M>
Field<T> boolean(std::string name, M T::* member, std::string help) {
  static_assert(std::is_same_v<detail::plain<M>, bool>);
  return {detail::doc_of(std::move(name), "boolean", std::move(help)),
          [member](const Value& value, const std::string& where, T& into) {
            into.*member = read_boolean(value, where);
          }};
}

template <typename T, typename M>
Field<T> text(std::string name, M T::* member, std::string help) {
  static_assert(std::is_same_v<detail::plain<M>, std::string>);
  return {detail::doc_of(std::move(name), "string", std::move(help)),
          [member](const Value& value, const std::string& where, T& into) {
            into.*member = read_text(value, where);
          }};
}

template <typename T, typename M>
Field<T> choice(std::string name, M T::* member, std::vector<std::string> words, std::string help) {
  static_assert(std::is_same_v<detail::plain<M>, std::string>);
  FieldDoc doc = detail::doc_of(std::move(name), "string", std::move(help));
  doc.one_of = words;
  return {std::move(doc),
          [member, words = std::move(words)](const Value& value, const std::string& where, T& into) {
            into.*member = read_choice(value, where, words);
          }};
}

template <typename T>
Field<T> bytes(std::string name, std::string T::* member, std::string help) {
  FieldDoc doc = detail::doc_of(std::move(name), "string", std::move(help));
  doc.format = "byte";
  return {std::move(doc), [member](const Value& value, const std::string& where, T& into) {
            into.*member = read_bytes(value, where);
          }};
}

template <typename T, typename U>
Field<T> list(std::string name, std::vector<U> T::* member, const Schema<U>& items, int64_t max_items,
              std::string help) {
  FieldDoc doc = detail::doc_of(std::move(name), "array", std::move(help));
  doc.max_length = max_items;
  doc.items = items.docs();
  return {std::move(doc), [member, items, max_items](const Value& value, const std::string& where, T& into) {
            const Value::Array& array = read_array(value, where, max_items);
            std::vector<U> read;
            for (size_t i = 0; i < array.size(); ++i)
              read.push_back(items.read(array[i], item_path(where, i)));
            into.*member = std::move(read);
          }};
}

// One value or an array of them: a form may have a field more than once. `read` is one of the readings above.
template <typename T, typename Read>
Field<T> repeated(FieldDoc doc, std::vector<std::string> T::* member, int64_t most, Read read) {
  return {std::move(doc), [member, most, read](const Value& value, const std::string& where, T& into) {
            if (!value.as<Value::Array>()) {
              into.*member = {std::string(read(value, where))};
              return;
            }
            const Value::Array& array = read_array(value, where, most);
            (into.*member).clear();
            for (size_t i = 0; i < array.size(); ++i)
              (into.*member).emplace_back(read(array[i], item_path(where, i)));
          }};
}

template <typename T>
Field<T> refused(std::string name, std::string type, std::string why, Value neutral) {
  return {detail::doc_of(std::move(name), std::move(type), why),
          [why, neutral = std::move(neutral)](const Value& value, const std::string& where, T&) {
            refuse(value, where, why, neutral);
          }};
}

template <typename T>
Field<T> unused(std::string name, std::string type, std::string why, Value neutral) {
  return {detail::doc_of(std::move(name), std::move(type), "has no effect: " + why),
          [why, neutral = std::move(neutral)](const Value& value, const std::string& where, T& into) {
            if (!says_nothing(value, neutral)) into.unused.push_back(where + ": " + why);
          }};
}

template <typename T>
T Schema<T>::read_onto(T into, const Value& value, const std::string& where) const {
  const Value::Object& object = read_object(value, where);
  for (const auto& [name, member] : object) {
    const auto same = [&](const Field<T>& field) { return field.doc.name == name; };
    const auto field = std::ranges::find_if(fields_, same);
    if (field == fields_.end()) {
      std::vector<std::string> known;
      for (const Field<T>& one : fields_) known.push_back(one.doc.name);
      fail_unknown(where, name, known);
    }
    if (!member.is_null()) field->read(member, member_path(where, name), into);
  }
  for (const Field<T>& field : fields_) {
    if (!field.doc.required) continue;
    const Value* member = value.find(field.doc.name);
    if (!member || member->is_null()) fail_missing(where, field.doc.name);
  }
  return into;
}

template <typename T>
std::vector<FieldDoc> Schema<T>::docs() const {
  std::vector<FieldDoc> docs;
  for (const Field<T>& field : fields_) docs.push_back(field.doc);
  return docs;
}

}  // namespace shoal::server
