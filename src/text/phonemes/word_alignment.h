// Which phonemes of a clause belong to which of its words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/phonemes/token.h"

namespace shoal::phonemes {

// espeak-ng speaks a clause better than its words one by one, but joins some of them ("was the" -> "wʌzðə")
// and splits others into several groups ("nginx"). Returns tokens for `words` such that phonemes_of(tokens)
// == clause, cut where `alone`, the phonemes of each word by itself, fit best (fewest edits). A word in the
// middle of a group has no space after it. Time and memory: phonemes of the clause times those of the words;
// above a million the groups are assigned one by one.
std::vector<Token> align_words(std::span<const std::string> words, std::string_view clause,
                               std::span<const std::string> alone);

}  // namespace shoal::phonemes
