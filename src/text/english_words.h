// Everything besides numbers and plain words: abbreviations, Roman numerals, addresses, symbols.
#pragma once

#include "text/english_scan.h"

namespace shoal::text {

// "Dr. Smith", "etc.", "No. 5", "e.g."; tried at a letter with no letter or digit before it.
std::optional<Spoken> speak_abbreviation(std::string_view text, size_t at);
// "Henry VIII" -> "Henry the eighth", "World War II" -> "War two"; tried as above.
std::optional<Spoken> speak_roman_numeral(std::string_view text, size_t at);
// An email address or URL: "jo@example.com" -> "jo at example dot com". `at` is where a stretch without white
// space begins.
std::optional<Spoken> speak_address(std::string_view text, size_t at);
// Signs: "&", "#1", "-5", "~5", "a + b", "@home", "'80s", ".5".
std::optional<Spoken> speak_symbol(std::string_view text, size_t at);

}  // namespace shoal::text
