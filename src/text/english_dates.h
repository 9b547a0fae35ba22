// Dates and times of day. Every rule is tried at a digit or letter with no letter or digit before it.
#pragma once

#include "text/english_scan.h"

namespace shoal::text {

// "2026-11-21", "11/21/2026" (day first when the month cannot be), "21.11.2026".
std::optional<Spoken> speak_date(std::string_view text, size_t at);
// "21 Nov 2026", "21st of November".
std::optional<Spoken> speak_day_month(std::string_view text, size_t at);
// "Nov. 21, 2026", "November 5-7", "Nov 2026".
std::optional<Spoken> speak_month_day(std::string_view text, size_t at);
// "8:30", "8:30pm", "8 a.m.", "14:05:20".
std::optional<Spoken> speak_time(std::string_view text, size_t at);

}  // namespace shoal::text
