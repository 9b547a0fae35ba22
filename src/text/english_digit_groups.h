// Phone numbers and other groups of digits.
#pragma once

#include "text/english_scan.h"

namespace shoal::text {

// "555-123-4567", "(555) 123-4567", "+44 20 7946 0958": digit by digit.
std::optional<Spoken> speak_phone_number(std::string_view text, size_t at);
// Three and more groups: "978-3-16-148410-0" digit by digit, "1.2.3" and "192.168.0.1" with their dots,
// "1/2/3".
std::optional<Spoken> speak_digit_groups(std::string_view text, size_t at);
}  // namespace shoal::text
