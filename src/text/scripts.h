// Which scripts a text is written in.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shoal::text {

// The script of most letters of `text` where it is none that one of `languages` (ISO 639-1: "en", "ru", ...)
// is written in: "Cyrillic", "Han", ...; "of another script" for those without a name here. Empty: most
// letters are at home, there are none, or nothing is known of one of the languages, or there are none.
// `text`: well-formed UTF-8.
std::string_view foreign_script(std::string_view text, std::span<const std::string> languages);

}  // namespace shoal::text
