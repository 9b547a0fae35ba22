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

// Absent: malformed. Quoted values lose their quotes, and the backslash before a quote or a backslash; any
// other character after a backslash keeps it, because browsers once sent C:\names so (RFC 7578 has no rule).
std::optional<MediaType> parse_media_type(std::string_view text);

// Calls `use` with the parts of a comma-separated field until it returns true, and returns whether it did.
template <typename Use>
bool any_part(std::string_view field, Use use);
// Whether a field like Accept or Accept-Encoding, with weights, names `word` (RFC 9110, 12.4.2): "gzip;q=0.5"
// does, "gzip;q=0" does not, nor does a wildcard.
bool lists(std::string_view field, std::string_view word);

// Whether it can be the name of a field (RFC 9110, 5.6.2).
bool is_token(std::string_view text);
// Compares ASCII letters only.
std::string to_lower(std::string_view text);
// Without blanks and tabs around it.
std::string_view trimmed(std::string_view text);

template <typename Use>
bool any_part(std::string_view field, Use use) {
  while (true) {
    const size_t comma = field.find(',');
    if (use(trimmed(field.substr(0, comma)))) return true;
    if (comma == std::string_view::npos) return false;
    field.remove_prefix(comma + 1);
  }
}

}  // namespace shoal::server
