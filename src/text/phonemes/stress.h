// Stress marks of a pronounced word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::phonemes {

bool is_vowel(char32_t phoneme);  // of the English set; a diphthong's letter too

// Whether the first sound is a vowel. False for none.
bool starts_with_vowel(std::string_view phonemes);

// Puts `stress` on a word: below -1 all marks go; -1, or 0 and -0.5 on a word with primary stress: primary
// becomes secondary and secondary goes; 0, 0.5, 1 on an unmarked word: secondary; 1 and more with only
// secondary: that becomes primary; more than 1 on an unmarked word: primary. A new mark stands just before
// the first vowel; a word without vowels stays unmarked.
std::string apply_stress(std::string_view phonemes, double stress);

// The parts of a compound, glued: of too many primary stresses the lightest half become secondary.
std::string glue_compound(std::vector<std::string> parts);

// Letter by letter: "GPU" -> ʤˌipˌijˈu. ASCII letters; others are left out.
std::string spell_letters(std::string_view letters, bool british);

}  // namespace shoal::phonemes
