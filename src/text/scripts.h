// Which scripts a text is written in.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shoal::text {

// The script of most letters of `text` if none of `languages` (ISO 639-1: "en", "ru", ...) is written in it:
// "Cyrillic", "Han",
// ...; "of another script" for scripts without a name here. Empty if most letters belong to the languages, if
// there are no letters or no languages, or if one of the languages is unknown. `text`: well-formed UTF-8.
std::string_view foreign_script(std::string_view text, std::span<const std::string> languages);

}  // namespace shoal::text
