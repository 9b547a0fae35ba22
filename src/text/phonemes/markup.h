// What a text may hold besides words: pauses, and words with their pronunciation beside them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::phonemes {

// A line of a text and the silence behind it.
struct Line {
  std::string text;  // may be empty: a pause at the beginning
  double pause_after_s = 0;
};

inline constexpr double kMaxPauseS = 60;    // at one place
inline constexpr double kMaxPausesS = 600;  // in a text

// Splits at "[pause:1.5s]" and at line ends (each line is spoken by itself, as Kokoro's own pipeline does).
// Lines are without white space at their ends; an empty one stands only in front of a pause. Neighbouring
// pauses add up. Throws Error(invalid_argument): invalid UTF-8, a pause that is not "[pause:SECONDSs]", or
// more of it than kMaxPauseS or kMaxPausesS.
std::vector<Line> split_lines(std::string_view text);

// The same, with long lines cut between sentences, so that pronouncing one takes well below a second. Links
// stay whole.
std::vector<Line> split_short_lines(std::string_view text);

// A stretch of text and what its writer said about it.
struct Span {
  std::string text;
  std::optional<std::string> phonemes;  // [Kokoro](/kˈOkəɹO/)
  std::optional<double> stress;         // [or](+1): -2, -1, -0.5, 0, 0.5, 1 or 2
  std::string number_flags;             // [120](#&#): of "&", "n", "a"
};

// "[text](target)" by its target: "/.../" phonemes, a number stress, "#...#" flags for how a number is read.
// Any other target (an address) is dropped and the text spoken. Empty targets too. Brackets that form no link
// are text. Throws Error(invalid_argument): a stress that is none of the seven, an unknown flag, empty
// phonemes.
std::vector<Span> split_links(std::string_view line);

// The words of a number (text/normalise.h) as its flags want them: '&' and 'n' put "and" ("n": "'n'") where
// British English does, 'a' says "a hundred" for "one hundred".
std::string apply_number_flags(std::string_view words, std::string_view flags);

// Without what has no sound and only gets in the way: control and private characters become spaces, soft
// hyphens, zero-width characters and variation selectors vanish. Typographic apostrophes become straight,
// wide letters and marks narrow (a wide mark has its space in itself), ligatures letters, and accents join
// what they stand on (NFC).
std::string clean(std::string_view text);

}  // namespace shoal::phonemes
