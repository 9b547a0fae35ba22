// What espeak-ng says, in the symbols that Kokoro was trained on.
#pragma once

#include <string>
#include <string_view>

#include "text/phonemes/language.h"

namespace shoal::phonemes {

// The versions of espeak-ng differ in the letter o: before 1.52 it writes the vowel of "force" with it.
struct EspeakVersion {
  int major = 1, minor = 51;
  bool is_before_1_52() const { return major < 1 || (major == 1 && minor < 52); }
};

// `ipa`: IPA of espeak-ng with U+0361 between the letters of one sound, UTF-8, as it came: line ends are
// taken for spaces, marks of a change of language ("(en)") are dropped. English: the substitutions of
// misaki's espeak fallback, in its order. That order makes one of them unreachable ("stairs" is stˈAəz in
// British English, never stˈɛːz); the model learned from what the order gives, so it is kept. Other
// languages: diphthongs and affricates in single letters, nasal and long vowels as they are.
std::string map_espeak(std::string_view ipa, Language language, EspeakVersion version = {});

}  // namespace shoal::phonemes
