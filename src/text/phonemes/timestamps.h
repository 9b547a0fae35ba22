// When each word is heard.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/phonemes/token.h"

namespace shoal::phonemes {

struct WordTime {
  size_t token;  // its index
  double start_s, end_s;

  friend bool operator==(const WordTime&, const WordTime&) = default;
};

// `durations`: frames of 25 ms for each symbol of phonemes_of(tokens), between the two pads: code points + 2.
// The tokens must hold only phonemes that have ids (drop_unknown), or every word after a dropped one is late.
// Half of a space belongs to the word before it, half to the word after it; three frames of the opening
// silence are not counted, so all times are that much earlier. Tokens without phonemes have no time. Throws
// Error(internal) when the lengths disagree.
std::vector<WordTime> word_times(std::span<const Token> tokens, std::span<const int64_t> durations);

}  // namespace shoal::phonemes
