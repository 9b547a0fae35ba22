// Written English into words a speaker says.
#pragma once

#include <string>
#include <string_view>

namespace shoal::text {

// Numbers, dates, times, money, units, abbreviations, addresses and signs become words: "Dr. Smith paid
// $12.50 on 11/21/2026" -> "Doctor Smith paid twelve dollars and fifty cents on November twenty-first, twenty
// twenty-six". Everything else is kept byte for byte, also markers such as "(excited)" and spellings of
// special tokens ("<|speaker:0|>"). Normalised text does not change any more. Time is proportional to the
// length. Throws Error(invalid_argument) for invalid UTF-8.
//
// Brackets::keep leaves what stands in square brackets within a line as it is: instructions to an S2 model
// ("[whispers for 2 seconds]"). A bracket that never closes is text.
enum class Brackets { read, keep };
std::string normalise_english(std::string_view text, Brackets brackets = Brackets::read);

}  // namespace shoal::text
