#include "server/routes/speech_warnings.h"

#include <algorithm>
#include <cstdio>

#include "base/printable.h"
#include "text/utf8.h"

namespace shoal::server {
namespace {

// The limit of the header: clients accept some kilobytes of headers.
constexpr size_t kMostWarnings = 8, kMostWarningBytes = 200;

// Every character beyond ASCII as JSON escapes it.
std::string in_ascii(std::string_view json) {
  std::string ascii;
  for (size_t at = 0; at < json.size(); at += text::character_bytes(json[at])) {
    const char32_t c = text::code_point_at(json, at);
    if (c < 0x80) {
      ascii += static_cast<char>(c);
      continue;
    }
    char escaped[16];
    if (c < 0x10000)
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
    else
      std::snprintf(escaped, sizeof escaped, "\\u%04x\\u%04x", static_cast<unsigned>(0xD7C0 + (c >> 10)),
                    static_cast<unsigned>(0xDC00 + (c & 0x3FF)));
    ascii += escaped;
  }
  return ascii;
}

}  // namespace

Value warnings_value(const std::vector<std::string>& warnings) {
  Value::Array all;
  for (const std::string& warning : warnings) all.push_back({warning});
  return {std::move(all)};
}

std::string warnings_header(const std::vector<std::string>& warnings) {
  std::vector<std::string> first;
  for (size_t i = 0; i < std::min(warnings.size(), kMostWarnings); ++i)
    first.push_back(printable(warnings[i], kMostWarningBytes));
  return in_ascii(write_json(warnings_value(first)));
}

}  // namespace shoal::server
