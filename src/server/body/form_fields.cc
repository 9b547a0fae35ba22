#include "server/body/form_fields.h"

#include <algorithm>

#include "base/printable.h"
#include "server/body/place.h"

namespace shoal::server {
namespace {

size_t fields_of(const Value::Object& form) {
  size_t fields = 0;
  for (const auto& [name, value] : form) {
    const auto* array = value.as<Value::Array>();
    fields += array ? array->size() : 1;
  }
  return fields;
}

}  // namespace

void add_form_field(Value::Object& form, std::string name, Value value) {
  const Place root;
  if (name.empty() || !is_utf8(name)) fail_in(root, "expected fields with names in UTF-8, found one without");
  const Place place = root.member(name);
  const auto* text = value.as<std::string>();
  if (text && !is_utf8(*text)) fail_in(place, "expected UTF-8, found other bytes");
  if (fields_of(form) >= kMaxFormFields)
    fail_in(root, "expected at most ", kMaxFormFields, " fields in a form, found more");

  const auto before = std::ranges::find(form, name, &Value::Object::value_type::first);
  if (before == form.end()) {
    form.emplace_back(std::move(name), std::move(value));
  } else if (auto* array = std::get_if<Value::Array>(&before->second.data)) {
    array->push_back(std::move(value));
  } else {
    Value::Array both;
    both.push_back(std::move(before->second));
    both.push_back(std::move(value));
    before->second.data = std::move(both);
  }
}

}  // namespace shoal::server
