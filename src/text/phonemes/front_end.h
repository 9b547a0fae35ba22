// Kokoro's text front end: text in, chunks of phonemes out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/phonemes/chunks.h"
#include "text/phonemes/english_lexicon.h"
#include "text/phonemes/espeak_pool.h"
#include "text/phonemes/language.h"
#include "text/phonemes/markup.h"

namespace shoal::phonemes {

struct FrontEndOptions {
  EspeakOptions espeak;
  std::string dictionaries;  // folder with misaki's us_gold.json, us_silver.json, gb_...; empty: none
};

struct TextOptions {
  Language language = Language::american;
  bool normalise = true;  // English numbers, dates, money, units and abbreviations become words
  ChunkRules chunks;
};

// Thread-safe.
class FrontEnd {
 public:
  // Reads the dictionaries; starts no helper yet. Throws Error: invalid_argument (options), not_found, io,
  // corrupt_file, too_large (dictionaries: a folder without any file for English is not_found).
  explicit FrontEnd(FrontEndOptions options);

  // A text with its pauses, links and lines (text/phonemes/markup.h), cut for the model. Empty when nothing
  // in it can be spoken and it asks for no pause. Throws Error: invalid_argument (UTF-8, markup), unsupported
  // (stress or number flags outside English), and the Errors of EspeakPool.
  std::vector<Chunk> chunks(std::string_view text, const TextOptions& options);

  // The tokens of one line. English with a dictionary: word by word; all else: clause by clause by espeak-ng.
  std::vector<Token> tokens(std::string_view line, const TextOptions& options);

  bool has_dictionary(Language language) const;

 private:
  const EnglishLexicon& lexicon_of(Language language) const;
  std::vector<Piece> english_pieces(const std::vector<Span>& spans, bool normalise) const;
  std::vector<Piece> other_pieces(const std::vector<Span>& spans) const;

  EnglishLexicon american_, british_;
  EspeakPool espeak_;
};

}  // namespace shoal::phonemes
