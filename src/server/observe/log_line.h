// The text of one line of the log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::server {

struct LogField {
  std::string_view name;                                         // an identifier
  std::variant<std::string_view, uint64_t, double, bool> value;  // texts: any bytes
};

enum class LogFormat { text, json };

// The line after time and level. JSON: members of an object, `"message":"...","name":...`; text: `message
// name=value ...`, without empty fields. One line of valid UTF-8; long texts are cut and end in "...".
std::string log_line(LogFormat format, std::string_view message, const std::vector<LogField>& fields);

// A text of any bytes as one word of a text line: quoted if it would be ambiguous.
std::string log_word(std::string_view text);

}  // namespace shoal::server
