#include "text/phonemes/symbols.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::phonemes {
namespace {

void remember(std::vector<char32_t>& seen, char32_t c) {
  if (std::find(seen.begin(), seen.end(), c) == seen.end()) seen.push_back(c);
}

}  // namespace

EncodedPhonemes encode_phonemes(std::string_view phonemes, const SymbolIds& symbols) {
  text::require_utf8(phonemes);
  EncodedPhonemes encoded;
  for (const char32_t c : to_code_points(phonemes)) {
    const auto found = symbols.find(c);
    if (found == symbols.end()) {
      remember(encoded.dropped, c);
    } else {
      encoded.ids.push_back(found->second);
    }
  }
  return encoded;
}

std::vector<char32_t> drop_unknown(std::vector<Token>& tokens, const SymbolIds& symbols) {
  std::vector<char32_t> dropped;
  for (Token& token : tokens) {
    std::u32string kept;
    for (const char32_t c : to_code_points(token.phonemes)) {
      if (symbols.contains(c)) {
        kept += c;
      } else {
        remember(dropped, c);
      }
    }
    token.phonemes = to_utf8(kept);
  }
  return dropped;
}

std::string describe_symbols(const std::vector<char32_t>& symbols) {
  constexpr size_t kMost = 10;
  std::string out;
  for (size_t i = 0; i < symbols.size() && i < kMost; ++i) {
    char number[16];
    std::snprintf(number, sizeof number, "U+%04X", static_cast<unsigned>(symbols[i]));
    if (i > 0) out += ", ";
    out += concat("'", printable(to_utf8({&symbols[i], 1})), "' (", number, ")");
  }
  if (symbols.size() > kMost) out += concat(" and ", symbols.size() - kMost, " more");
  return out;
}

void require_known(const std::vector<char32_t>& dropped) {
  if (dropped.empty()) return;
  fail(ErrorCode::invalid_argument, "phonemes: the model's vocabulary has no ", describe_symbols(dropped));
}

}  // namespace shoal::phonemes
