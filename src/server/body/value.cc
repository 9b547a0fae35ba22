#include "server/body/value.h"

#include <algorithm>

namespace shoal::server {

const Value* Value::find(std::string_view name) const {
  const auto* object = as<Object>();
  if (!object) return nullptr;
  const auto member = std::ranges::find(*object, name, &Object::value_type::first);
  return member == object->end() ? nullptr : &member->second;
}

}  // namespace shoal::server
