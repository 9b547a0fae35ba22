// For this folder's tests: the fixture tokenizers and random text.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace shoal::text {

inline std::string fixture(const std::string& name) { return SHOAL_SOURCE_DIR "/tests/data/fish/" + name; }

inline std::unique_ptr<const Tokenizer> load_s1_fixture() {
  return load_tokenizer(fixture("set_a/tokenizer.tiktoken"), fixture("set_a/special_tokens.json"));
}
inline std::unique_ptr<const Tokenizer> load_s2_fixture() {
  return load_tokenizer(fixture("set_s2/tokenizer.json"), "");
}

// `characters` random characters, mostly of the kinds that rules look at: ASCII letters, digits, punctuation,
// blanks, line ends, accents (also as combining marks), CJK, emoji.
inline std::string random_text(std::mt19937& random, size_t characters) {
  static constexpr char32_t kInteresting[] = {
      U' ',      U'\n',     U'\r',     U'\t',     U'.',      U',',      U'!',      U'?',
      U'\'',     U'"',      U'(',      U')',      U'$',      U'%',      U'-',      U':',
      U'<',      U'|',      U'>',      U'0',      U'1',      U'9',      U'\u00E9', U'\u0301',
      U'\u0323', U'\u4F60', U'\u3002', U'\uFF01', U'\u00A0', U'\u2019', U'\u2026', U'\U0001F600'};
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    const uint32_t kind = random() % 8;
    if (kind < 4) {
      text.push_back(static_cast<char>('a' + random() % 26));
    } else if (kind < 7) {
      append_utf8(text, kInteresting[random() % std::size(kInteresting)]);
    } else {
      char32_t c;
      do c = random() % 0x30000;
      while (c >= 0xD800 && c <= 0xDFFF);
      append_utf8(text, c);
    }
  }
  return text;
}

}  // namespace shoal::text
