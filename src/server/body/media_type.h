// Header fields of the form  value; name=value; name="value".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::server {

// Content-Type: audio/wav; charset=utf-8. Content-Disposition: form-data; name="text".
struct MediaType {
  std::string value;                                            // in lower case
  std::vector<std::pair<std::string, std::string>> parameters;  // names in lower case and unique

  const std::string* find(std::string_view name) const;
  // True without a charset, too.
  bool is_utf8() const;
};

// Absent: it has no such form. Quoted values lose their quotes, and the backslash before a quote or a
// backslash: what else stands behind one is taken as it is, because browsers once sent C:\names so (RFC 7578
// has no rule).
std::optional<MediaType> parse_media_type(std::string_view text);

// ASCII letters alone.
std::string to_lower(std::string_view text);
// Without blanks and tabs around it.
std::string_view trimmed(std::string_view text);

}  // namespace shoal::server
