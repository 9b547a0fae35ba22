// Members of members, for tests of answers.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "server/body/value.h"

namespace shoal::server::testing {

// A member of a member: at(value, {"error", "param"}).
inline Value at(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = &value;
  for (const std::string_view name : path) {
    found = found->find(name);
    if (!found) return {std::string("(absent)")};
  }
  return *found;
}

inline std::string text_at(const Value& value, std::initializer_list<std::string_view> path) {
  const Value found = at(value, path);
  const auto* text = found.as<std::string>();
  return text ? *text : found.is_null() ? "(null)" : "(not a text)";
}

}  // namespace shoal::server::testing
