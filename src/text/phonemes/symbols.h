// Phonemes into the ids of a model's vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/phonemes/token.h"

namespace shoal::phonemes {

// Code point -> id, from the model's config.json.
using SymbolIds = std::unordered_map<char32_t, int32_t>;

struct EncodedPhonemes {
  std::vector<int32_t> ids;       // without the pads
  std::vector<char32_t> dropped;  // code points without an id, each once, in order of appearance
};

// One id per code point; code points without one are left out, as in the official code. Throws
// Error(invalid_argument) for invalid UTF-8.
EncodedPhonemes encode_phonemes(std::string_view phonemes, const SymbolIds& symbols);

// Removes code points without an id from the tokens, so that durations count only the rest; returns the
// removed ones, each once. (The style row depends on the length before.)
std::vector<char32_t> drop_unknown(std::vector<Token>& tokens, const SymbolIds& symbols);

// "'¿' (U+00BF), 'ʘ' (U+0298)": for a warning or a refusal; at most ten are named.
std::string describe_symbols(const std::vector<char32_t>& symbols);

// Strict mode: throws Error(invalid_argument) naming `dropped` unless it is empty.
void require_known(const std::vector<char32_t>& dropped);

}  // namespace shoal::phonemes
