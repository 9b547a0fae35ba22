// The whole way from text to phonemes against the official code, on the espeak-ng that is installed.
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/phonemes/espeak_vectors_testing.h"
#include "text/phonemes/front_end.h"
#include "text/phonemes/pieces.h"
#include "text/phonemes/pronounce.h"

#ifdef SHOAL_BUILD_PHONEMIZER

namespace shoal::phonemes {
namespace {

class EspeakGoldens : public ::testing::Test {
 protected:
  void SetUp() override {
    const EspeakVersion version = pool_.version();
    if (version.major != 1 || version.minor != 51)
      GTEST_SKIP() << "the vectors are those of 1.51, installed is " << version.major << "." << version.minor;
  }
  EspeakPool pool_;
};

TEST_F(EspeakGoldens, Words) {
  const Json vectors = testing::espeak_vectors();
  for (const auto& [language, raw, mapped] :
       {std::tuple(Language::american, "us_raw", "us"), {Language::british, "gb_raw", "gb"}}) {
    std::vector<std::string> words;
    for (const Json& word : vectors.at("words").as_array()) words.push_back(word.at("word").as_string());
    const std::vector<std::string> ipa = pool_.to_ipa(language, words);
    const std::vector<std::string> phonemes = pool_.phonemes(language, words);
    ASSERT_EQ(ipa.size(), words.size());
    for (size_t i = 0; i < words.size(); ++i) {
      const Json& word = vectors.at("words").as_array()[i];
      EXPECT_EQ(ipa[i], testing::with_ties(word.at(raw).as_string())) << words[i];
      EXPECT_EQ(phonemes[i], word.at(mapped).as_string()) << words[i];
    }
  }
}

// The official code's reading of a text using only espeak-ng: without normalisation, marks as written.
TEST_F(EspeakGoldens, Sentences) {
  FrontEnd front_end({});
  const Json vectors = testing::espeak_vectors();
  for (const Json& sentence : vectors.at("sentences").as_array()) {
    const std::string& text = sentence.at("text").as_string();
    const Language language = parse_language(sentence.at("lang").as_string());
    const std::vector<Token> tokens = is_english(language)
                                          ? pronounce_clauses(split_at_marks(text), language, pool_)
                                          : front_end.tokens(text, {.language = language});
    EXPECT_EQ(phonemes_of(tokens), sentence.at("kokoro").as_string()) << text;
  }
}

}  // namespace
}  // namespace shoal::phonemes

#endif
