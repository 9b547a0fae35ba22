#include "text/phonemes/espeak_mapping.h"

#include <gtest/gtest.h>

#include "text/phonemes/espeak_vectors_testing.h"

namespace shoal::phonemes {
namespace {

TEST(EspeakMapping, EveryWordOfTheVectorsMapsExactly) {
  const Json vectors = testing::espeak_vectors();
  const Json::Array& words = vectors.at("words").as_array();
  ASSERT_EQ(words.size(), 117u);
  for (const Json& word : words) {
    const auto field = [&](const char* name) { return word.at(name).as_string(); };
    EXPECT_EQ(map_espeak(testing::with_ties(field("us_raw")), Language::american), field("us"))
        << field("word");
    EXPECT_EQ(map_espeak(testing::with_ties(field("gb_raw")), Language::british), field("gb"))
        << field("word");
  }
}

TEST(EspeakMapping, KeepsTheOrderOfTheReferenceInBritishEnglish) {
  // e becomes A before "e͡ə" is looked for.
  EXPECT_EQ(map_espeak("stˈe\u0361əz", Language::british), "stˈAəz");
}

TEST(EspeakMapping, SyllabicConsonantsBecomeFaintSchwas) {
  EXPECT_EQ(map_espeak("n\u0329", Language::american), "ᵊn");
  EXPECT_EQ(map_espeak("ʔˌn\u0329", Language::american), "tn");
  EXPECT_EQ(map_espeak("\u0329", Language::american), "");
}

TEST(EspeakMapping, NewerEspeakVersionsKeepTheVowelO) {
  EXPECT_EQ(map_espeak("fˈoːɹs", Language::american), "fˈɔɹs");
  EXPECT_EQ(map_espeak("fˈoːɹs", Language::american, {1, 52}), "fˈoɹs");
  EXPECT_EQ(map_espeak("fˈoːɹs", Language::american, {2, 0}), "fˈoɹs");
}

TEST(EspeakMapping, OtherLanguagesKeepLengthAndNasals) {
  EXPECT_EQ(map_espeak("bɔ\u0303ʒˈuː", Language::french), "bɔ\u0303ʒˈuː");
  EXPECT_EQ(map_espeak("ɡrˈat\u0361sje", Language::italian), "ɡrˈaʦje");
  EXPECT_EQ(map_espeak("a-b", Language::french), "ab");
}

TEST(EspeakMapping, DropsLanguageMarksAndExtraSpaces) {
  EXPECT_EQ(map_espeak("(en)hˈɛ(fr) \n ə ", Language::french), "hˈɛ ə");
  EXPECT_EQ(map_espeak("(((((", Language::french), "(((((");
  EXPECT_EQ(map_espeak("", Language::american), "");
}

}  // namespace
}  // namespace shoal::phonemes
