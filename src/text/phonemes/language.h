// The languages of Kokoro's voices.
#pragma once

#include <string_view>

namespace shoal::phonemes {

// Named by the letter that voices of the language begin with.
enum class Language : char {
  american = 'a',
  british = 'b',
  spanish = 'e',
  french = 'f',
  hindi = 'h',
  italian = 'i',
  portuguese = 'p',  // as spoken in Brazil
};

inline char letter_of(Language language) { return static_cast<char>(language); }
inline bool is_english(Language language) {
  return language == Language::american || language == Language::british;
}

// "en-us", "fr-fr", ...: what espeak-ng calls it.
std::string_view espeak_name(Language language);
// "American English", ...
std::string_view name_of(Language language);

// A letter ("a") or an alias in any case ("en-us", "en-gb", "es", "fr-fr", "hi", "it", "pt-br"). Throws
// Error: unsupported for Japanese ("j", "ja") and Mandarin ("z", "zh"), whose phonemes the caller must send;
// invalid_argument for anything else.
Language parse_language(std::string_view code);

// By the first letter of a voice's name, of a blend by its first voice ("af_bella(2)+bm_lewis" is American).
// Throws as parse_language does.
Language language_of_voice(std::string_view voice);

}  // namespace shoal::phonemes
