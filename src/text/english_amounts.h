// Numbers with their context: money, units, percentages, fractions, years.
#pragma once

#include "text/english_scan.h"

namespace shoal::text {

// "3/4", "24/7", "½".
std::optional<Spoken> speak_fraction(std::string_view text, size_t at);
// "$12.50", "£3.2 million", "$5-10", "€20/month".
std::optional<Spoken> speak_money(std::string_view text, size_t at);
// Any other number with its suffix: "1,234", "3.14", "22nd", "1980s", "5 km", "20%", "2½", "1984", "380" of
// "A380".
std::optional<Spoken> speak_amount(std::string_view text, size_t at);

}  // namespace shoal::text
