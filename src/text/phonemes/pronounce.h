// Words and marks into tokens with phonemes.
#pragma once

#include <vector>

#include "text/phonemes/english_lexicon.h"
#include "text/phonemes/espeak_pool.h"
#include "text/phonemes/token.h"

namespace shoal::phonemes {

// By espeak-ng, one clause at a time, because words affect their neighbours. Every token has its own phonemes
// (word_alignment.h). Pieces with given phonemes keep them and separate clauses. Throws the Errors of
// EspeakPool.
std::vector<Token> pronounce_clauses(const std::vector<Piece>& pieces, Language language, EspeakPool& pool);

// English word by word: the lexicon, and espeak-ng for unknown words. Compounds ("well-known", "OpenAI") that
// no dictionary has are spoken in parts and joined.
std::vector<Token> pronounce_words(const std::vector<Piece>& pieces, const EnglishLexicon& lexicon,
                                   Language language, EspeakPool& pool);

}  // namespace shoal::phonemes
