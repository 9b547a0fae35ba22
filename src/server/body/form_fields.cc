#include "server/body/form_fields.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

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

// A part of a name: the place in an array, or a member.
struct Step {
  std::optional<size_t> index;
  std::string member;
};

constexpr size_t kMaxSteps = 8;

std::optional<size_t> index_in(std::string_view text) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size() || index >= kMaxFormFields)
    return std::nullopt;
  return index;
}

// "references[0][audio]" -> references, 0, audio; empty for any other name.
std::vector<Step> steps_of(std::string_view name) {
  const size_t first = name.find_first_of("[.");
  if (first == 0 || first == std::string_view::npos) return {};
  std::vector<Step> steps = {{.index = {}, .member = std::string(name.substr(0, first))}};
  for (std::string_view rest = name.substr(first); !rest.empty();) {
    const bool bracketed = rest.front() == '[';
    const size_t end = bracketed ? rest.find(']') : std::min(rest.find_first_of("[.", 1), rest.size());
    if ((!bracketed && rest.front() != '.') || end == std::string_view::npos || end < 2 ||
        steps.size() == kMaxSteps)
      return {};
    const std::string_view text = rest.substr(1, end - 1);
    const auto index = bracketed ? index_in(text) : std::nullopt;
    steps.push_back({.index = index, .member = std::string(text)});
    rest.remove_prefix(end + (bracketed ? 1 : 0));
  }
  return steps;
}

[[noreturn]] void fail_both(const std::string& name) {
  fail_in(Place{}.member(name), "expected a value or what holds others, found both");
}

// Where a field of that name belongs, made as it is needed.
Value& place_of(Value& root, const std::string& name, std::span<const Step> steps) {
  Value* at = &root;
  for (const Step& step : steps) {
    if (step.index) {
      if (at->is_null()) at->data = Value::Array{};
      auto* array = std::get_if<Value::Array>(&at->data);
      if (!array) fail_both(name);
      if (*step.index > array->size())
        fail_in(Place{}.member(name), "expected indices from 0 in order, found none of ", array->size());
      if (*step.index == array->size()) array->emplace_back();
      at = &(*array)[*step.index];
      continue;
    }
    if (at->is_null()) at->data = Value::Object{};
    auto* object = std::get_if<Value::Object>(&at->data);
    if (!object) fail_both(name);
    const auto member = std::ranges::find(*object, step.member, &Value::Object::value_type::first);
    at = member == object->end() ? &object->emplace_back(step.member, Value{}).second : &member->second;
  }
  return *at;
}

}  // namespace

Value nested_form(Value::Object form) {
  Value root{Value::Object{}};
  for (auto& [name, value] : form) {
    std::vector<Step> steps = steps_of(name);
    if (steps.empty()) steps.push_back({.index = {}, .member = name});
    Value& at = place_of(root, name, steps);
    if (!at.is_null()) fail_both(name);
    at = std::move(value);
  }
  return root;
}

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
