// Text into words and punctuation marks.
#pragma once

#include <string_view>
#include <vector>

#include "text/phonemes/token.h"

namespace shoal::phonemes {

// A word that is longer is pronounced in parts.
inline constexpr size_t kMaxWordBytes = 160;

// English. A word is a run of letters, digits and what stands between them: apostrophes, hyphens, the dots of
// initialisms ("U.S.A."). Marks carry their phonemes: ; : , . ! ? … as written (equal neighbours together),
// dashes and hyphens between words —, brackets of any kind ( ), quotes “ ” by where they stand. % & + @ = °
// become words; other signs are silent and dropped. Well-formed UTF-8; linear time.
std::vector<Piece> split_english(std::string_view text);

// Any language, as the tools around espeak-ng do it: the marks ; : , . ! ? ¡ ¿ — … " « » “ ” are kept as they
// are written, words are what white space separates.
std::vector<Piece> split_at_marks(std::string_view text);

}  // namespace shoal::phonemes
