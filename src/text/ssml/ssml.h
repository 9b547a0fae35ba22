// SSML (Speech Synthesis Markup Language 1.1, W3C 2010): the part of it that is spoken here, as plain parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::ssml {

// A stretch that is spoken in one way, and the silence behind it.
struct Part {
  std::string text;   // plain, with a line for each paragraph or sentence; empty: only silence
  std::string voice;  // of the nearest <voice>; empty: the request's
  double rate = 1;    // of speech, beside that of the request: 2 is twice as fast
  double pause_after_s = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

struct Document {
  std::vector<Part> parts;          // at least one
  std::vector<std::string> unused;  // attributes without an effect, "name: why"
};

struct Options {
  bool phonemes = false;  // the model reads them: <phoneme> becomes [word](/ipa/), as plain texts have it
};

inline constexpr double kMaxBreakS = 10, kMaxBreaksS = 600;
inline constexpr int kMaxDepth = 32, kMaxParts = 1000;

// Elements: speak, p, s, break (time, strength), say-as (interpret-as, format), sub (alias), phoneme
// (alphabet ipa, ph), prosody (rate), voice (name). White space is one space. Throws Error(invalid_argument:
// not well-formed, a document type and so entities, too deep, too long, values; unsupported: any other
// element or attribute), each message "text: line N: ...".
Document parse(std::string_view ssml, const Options& options);

// The words of <say-as>. `what`: characters, spell-out, verbatim, digits, telephone, cardinal, number,
// ordinal, date. `format`: of a date, "mdy", "dmy", "ymd", "md", "dm", "ym", "my", "y"; empty: as it is
// written. The words are English. Throws Error(unsupported, invalid_argument), whose message begins with the
// attribute.
std::string say_as(std::string_view what, std::string_view format, std::string_view text);

}  // namespace shoal::ssml
