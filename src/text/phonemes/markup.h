// The markup in a text: pauses, and words with a given pronunciation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::phonemes {

// A line of a text and the silence after it.
struct Line {
  std::string text;  // may be empty: a pause at the beginning
  double pause_after_s = 0;
};

inline constexpr double kMaxPauseS = 60;    // at one place
inline constexpr double kMaxPausesS = 600;  // in a text

// Splits at "[pause:1.5s]" and at line ends (each line is spoken separately, as in Kokoro's own pipeline).
// Lines are trimmed; an empty one appears only before a pause. Neighbouring pauses add up. Throws
// Error(invalid_argument): invalid UTF-8, a pause that is not "[pause:SECONDSs]", or pauses longer than
// kMaxPauseS or kMaxPausesS.
std::vector<Line> split_lines(std::string_view text);

// The same, with long lines cut between sentences, so that pronouncing one takes well below a second. Links
// stay whole.
std::vector<Line> split_short_lines(std::string_view text);

// A stretch of text with its markup.
struct Span {
  std::string text;
  std::optional<std::string> phonemes;  // [Kokoro](/kˈOkəɹO/)
  std::optional<double> stress;         // [or](+1): -2, -1, -0.5, 0, 0.5, 1 or 2
  std::string number_flags;             // [120](#&#): of "&", "n", "a"
};

// Reads "[text](target)" by its target: "/.../" phonemes, a number stress, "#...#" flags for how a number is
// read. Any other target (an address), even an empty one, is dropped and the text is spoken. Brackets that
// form no link are text. Throws Error(invalid_argument): a stress other than the seven, an unknown flag,
// empty phonemes.
std::vector<Span> split_links(std::string_view line);

// The words of a number (text/normalise.h) according to its flags: '&' and 'n' insert "and" ("n": "'n'") as
// in British English, 'a' says "a hundred" for "one hundred".
std::string apply_number_flags(std::string_view words, std::string_view flags);

// Removes characters without sound: control and private characters become spaces; soft hyphens, zero-width
// characters and variation selectors vanish. Typographic apostrophes become straight, wide letters and marks
// narrow (a wide mark includes its space), ligatures letters, and accents combine with their letters (NFC).
std::string clean(std::string_view text);

}  // namespace shoal::phonemes
