// Collects the fields of a form.
#pragma once

#include "server/body/value.h"

namespace shoal::server {

// None of our fields repeats this often; each repetition costs a search among the earlier ones.
constexpr size_t kMaxFormFields = 256;

// Adds a field; a name that was there before makes an Array of its values. Throws
// BodyError(invalid_argument): an empty name, one that is not UTF-8, a text that is not, too many fields.
void add_form_field(Value::Object& form, std::string name, Value value);

// Converts a form whose names describe nested values, as programs write arrays of objects
// ("references[0][audio]", "references[0].audio"), to that value; other names stay as they are. Indices count
// from 0 in the order of the fields. Throws BodyError(invalid_argument): a skipped index, a name that is both
// a value and a container.
Value nested_form(Value::Object form);

}  // namespace shoal::server
