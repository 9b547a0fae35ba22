#include "text/phonemes/symbols.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal::phonemes {
namespace {

const SymbolIds kSymbols = {{U'a', 43}, {U' ', 16}, {U'ɡ', 92}, {U'ˈ', 156}, {U'.', 4}};

TEST(EncodePhonemes, GivesOneIdPerCodePoint) {
  const EncodedPhonemes encoded = encode_phonemes("ɡˈa a.", kSymbols);
  EXPECT_EQ(encoded.ids, (std::vector<int32_t>{92, 156, 43, 16, 43, 4}));
  EXPECT_TRUE(encoded.dropped.empty());
  EXPECT_NO_THROW(require_known(encoded.dropped));
}

TEST(EncodePhonemes, NamesUnknownPhonemes) {
  const EncodedPhonemes encoded = encode_phonemes("¿ga¿a\xF0\x9F\x98\x80", kSymbols);
  EXPECT_EQ(encoded.ids, (std::vector<int32_t>{43, 43}));
  EXPECT_EQ(encoded.dropped, (std::vector<char32_t>{U'¿', U'g', U'\U0001F600'}));
  EXPECT_EQ(describe_symbols({U'¿', U'g'}), "'¿' (U+00BF), 'g' (U+0067)");
  try {
    require_known(encoded.dropped);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.message().find("'g' (U+0067)"), std::string::npos) << error.message();
  }
}

TEST(EncodePhonemes, LongListsAreCut) {
  std::vector<char32_t> many;
  for (char32_t c = 0x400; c < 0x500; ++c) many.push_back(c);
  EXPECT_LT(describe_symbols(many).size(), 300u);
  EXPECT_NE(describe_symbols(many).find("and 246 more"), std::string::npos);
}

TEST(EncodePhonemes, RefusesInvalidUtf8) { EXPECT_THROW(encode_phonemes("\xff", kSymbols), Error); }

TEST(DropUnknown, KeepsTheKnownPhonemes) {
  std::vector<Token> tokens = {{"x", "aga", true}, {"y", "¿", false}, {"z", "a", false}};
  EXPECT_EQ(drop_unknown(tokens, kSymbols), (std::vector<char32_t>{U'g', U'¿'}));
  EXPECT_EQ(tokens, (std::vector<Token>{{"x", "aa", true}, {"y", "", false}, {"z", "a", false}}));
  EXPECT_TRUE(encode_phonemes(phonemes_of(tokens), kSymbols).dropped.empty());
}

}  // namespace
}  // namespace shoal::phonemes
