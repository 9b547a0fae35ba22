// Words and marks with their phonemes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/phonemes/code_points.h"

namespace shoal::phonemes {

// A word or punctuation mark as written (numbers: as spoken) and its pronunciation. A token without phonemes
// is silent.
struct Token {
  std::string text;
  std::string phonemes;
  bool space_after = false;  // a space follows in the phonemes

  friend bool operator==(const Token&, const Token&) = default;
};

// The string that the model reads.
inline std::string phonemes_of(std::span<const Token> tokens) {
  std::string out;
  for (const Token& token : tokens) {
    out += token.phonemes;
    if (token.space_after) out += ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

// A token in progress: its phonemes are filled in by the first stage that can.
struct Piece {
  std::string text;
  std::optional<std::string> phonemes;  // known: a mark, or given by the writer
  std::optional<double> stress;         // -2..2, given by the writer
  bool space_after = false;
};

// What ends a sentence, what ends a clause: the classes of punctuation at which a text is best cut.
enum class MarkKind { none, dash, colon, sentence };
inline MarkKind mark_kind(std::string_view phonemes) {
  if (phonemes.empty()) return MarkKind::none;
  switch (text::code_point_at(phonemes, 0)) {
    case U'!':
    case U'.':
    case U'?':
    case U'…':
      return MarkKind::sentence;
    case U':':
    case U';':
      return MarkKind::colon;
    case U',':
    case U'—':
      return MarkKind::dash;
    default:
      return MarkKind::none;
  }
}
// Quotes and brackets, which surround words and end no sentence.
inline bool is_bracket_or_quote(std::string_view phonemes) {
  return phonemes == "(" || phonemes == ")" || phonemes == "“" || phonemes == "”" || phonemes == "\"" ||
         phonemes == "«" || phonemes == "»";
}
inline bool is_mark(std::string_view phonemes) {
  return mark_kind(phonemes) != MarkKind::none || is_bracket_or_quote(phonemes) ||
         phonemes.starts_with("¡") || phonemes.starts_with("¿");
}

}  // namespace shoal::phonemes
