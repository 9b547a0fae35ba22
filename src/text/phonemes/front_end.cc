#include "text/phonemes/front_end.h"

#include "base/error.h"
#include "base/printable.h"
#include "text/characters.h"
#include "text/normalise.h"
#include "text/phonemes/pieces.h"
#include "text/phonemes/pronounce.h"

namespace shoal::phonemes {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// The letters that the v1.0 models were trained with for two sounds of American English.
std::string for_model(std::string phonemes) {
  replace_all(phonemes, "ɾ", "T");
  replace_all(phonemes, "ʔ", "t");
  return phonemes;
}

// "apple(s)" -> "apples".
void join_optional_plurals(std::string& text) {
  for (size_t at = 0; (at = text.find("(s)", at)) != std::string::npos; ++at) {
    if (at == 0 || !text::is_letter(text::code_point_at(text, text::previous_character(text, at)))) continue;
    text.replace(at, 3, "s");
  }
}

// Spans are read one by one; the white space at their ends belongs between their pieces.
void append(std::vector<Piece>& pieces, const Span& span, std::vector<Piece> more) {
  const bool space_before = !span.text.empty() && text::is_white_space(text::code_point_at(span.text, 0));
  if (space_before && !pieces.empty()) pieces.back().space_after = true;
  for (Piece& piece : more) {
    if (span.stress && !piece.phonemes) piece.stress = span.stress;
    pieces.push_back(std::move(piece));
  }
}

}  // namespace

FrontEnd::FrontEnd(FrontEndOptions options) : espeak_(std::move(options.espeak)) {
  if (options.dictionaries.empty()) return;
  american_ = EnglishLexicon::read(options.dictionaries, false);
  british_ = EnglishLexicon::read(options.dictionaries, true);
  if (!american_.knows_words() && !british_.knows_words())
    fail(ErrorCode::not_found,
         "dictionaries: expected us_gold.json, us_silver.json, gb_gold.json or gb_silver.json in ",
         options.dictionaries);
}

const EnglishLexicon& FrontEnd::lexicon_of(Language language) const {
  return language == Language::british ? british_ : american_;
}

bool FrontEnd::has_dictionary(Language language) const {
  return is_english(language) && lexicon_of(language).knows_words();
}

std::vector<Piece> FrontEnd::english_pieces(const std::vector<Span>& spans, bool normalise) const {
  std::vector<Piece> pieces;
  for (const Span& span : spans) {
    if (span.phonemes) {
      append(pieces, {}, {{span.text, for_model(*span.phonemes), {}, false}});
      continue;
    }
    std::string text = span.text;
    if (normalise) join_optional_plurals(text);
    if (normalise || !span.number_flags.empty()) text = text::normalise_english(text);
    if (!span.number_flags.empty()) text = apply_number_flags(text, span.number_flags);
    append(pieces, span, split_english(text));
  }
  return pieces;
}

std::vector<Piece> FrontEnd::other_pieces(const std::vector<Span>& spans) const {
  std::vector<Piece> pieces;
  for (const Span& span : spans) {
    if (span.stress || !span.number_flags.empty())
      fail(ErrorCode::unsupported, "input: stress and number flags, as of \"", printable(span.text),
           "\", are for English; give phonemes: [word](/phonemes/)");
    if (span.phonemes) {
      append(pieces, {}, {{span.text, *span.phonemes, {}, false}});
      continue;
    }
    std::string text = span.text;
    for (const auto& [from, to] : {std::pair("«", "“"), {"»", "”"}, {"(", "«"}, {")", "»"}})
      replace_all(text, from, to);
    std::vector<Piece> more = split_at_marks(text);
    for (Piece& piece : more) {
      if (piece.phonemes == "«") piece.text = "(", piece.phonemes = "(";
      if (piece.phonemes == "»") piece.text = ")", piece.phonemes = ")";
    }
    append(pieces, span, std::move(more));
  }
  return pieces;
}

std::vector<Token> FrontEnd::tokens(std::string_view line, const TextOptions& options) {
  text::require_utf8(line);
  const std::vector<Span> spans = split_links(clean(line));
  const Language language = options.language;
  std::vector<Token> tokens;
  if (!is_english(language)) {
    tokens = pronounce_clauses(other_pieces(spans), language, espeak_);
  } else if (has_dictionary(language)) {
    tokens =
        pronounce_words(english_pieces(spans, options.normalise), lexicon_of(language), language, espeak_);
    for (Token& token : tokens) token.phonemes = for_model(std::move(token.phonemes));
  } else {
    tokens = pronounce_clauses(english_pieces(spans, options.normalise), language, espeak_);
    // The r that espeak-ng links to the next word is there once already, from its "ɚ".
    for (Token& token : tokens) replace_all(token.phonemes, "ɹɹ", "ɹ");
  }
  tidy_spaces(tokens);
  return tokens;
}

std::vector<Chunk> FrontEnd::chunks(std::string_view text, const TextOptions& options) {
  Chunker chunker(options.chunks);
  std::vector<Chunk> chunks;
  for (const Line& line : split_short_lines(text)) {
    std::vector<Token> said = line.text.empty() ? std::vector<Token>() : tokens(line.text, options);
    for (Chunk& chunk : chunker.cut(std::move(said), line.pause_after_s)) chunks.push_back(std::move(chunk));
  }
  return chunks;
}

}  // namespace shoal::phonemes
