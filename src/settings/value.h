// Values of settings as text: parsed strictly, printed as TOML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/printable.h"

namespace shoal::settings {

// In the order of `Type`.
using Value = std::variant<bool, int64_t, double, std::string>;
enum class Type { boolean, integer, number, text };

std::string_view name_of(Type type);  // "true or false", "integer", "number", "text"

// Parses all of `text` as a value of `type`; booleans are true/false, 1/0, on/off, yes/no in any case. Throws
// Error(invalid_argument) with what was expected and found, without naming the setting. `range`: the expected
// range for a number that is too large to represent.
Value parse_value(Type type, std::string_view text, std::string_view range = {});

// For messages: texts in quotes, shortened and printable.
std::string shown(const Value& value);

// As TOML writes it. Throws Error(invalid_argument): a text that is not UTF-8.
std::string to_toml(const Value& value);

constexpr size_t kMaxPath = 4096;  // PATH_MAX: printable() shows paths whole

}  // namespace shoal::settings
