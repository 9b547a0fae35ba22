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

// `ipa`: unmodified output of espeak-ng, IPA in UTF-8 with U+0361 between the letters of one sound. Line ends
// count as spaces, marks of a change of language ("(en)") are dropped. English: the substitutions of misaki's
// espeak fallback, in its order. That order makes one of them unreachable ("stairs" is stˈAəz in British
// English, never stˈɛːz); the model learned from that output, so the order is kept. Other languages:
// diphthongs and affricates in single letters, nasal and long vowels unchanged.
std::string map_espeak(std::string_view ipa, Language language, EspeakVersion version = {});

}  // namespace shoal::phonemes
