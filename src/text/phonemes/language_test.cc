#include "text/phonemes/language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/phonemes/refusal_testing.h"

namespace shoal::phonemes {
namespace {

using ::testing::HasSubstr;

TEST(Language, LettersAndAliasesMatchInAnyCase) {
  const std::pair<const char*, Language> cases[] = {
      {"a", Language::american}, {"en-us", Language::american}, {"EN-US", Language::american},
      {"b", Language::british},  {"en-gb", Language::british},  {"e", Language::spanish},
      {"es", Language::spanish}, {"f", Language::french},       {"fr-fr", Language::french},
      {"h", Language::hindi},    {"hi", Language::hindi},       {"i", Language::italian},
      {"it", Language::italian}, {"p", Language::portuguese},   {"pt-br", Language::portuguese},
      {"A", Language::american}};
  for (const auto& [code, language] : cases) EXPECT_EQ(parse_language(code), language) << code;
}

TEST(Language, EveryLanguageHasItsNameForEspeak) {
  EXPECT_EQ(espeak_name(Language::american), "en-us");
  EXPECT_EQ(espeak_name(Language::portuguese), "pt-br");
  EXPECT_EQ(letter_of(Language::french), 'f');
  EXPECT_EQ(name_of(Language::hindi), "Hindi");
}

TEST(Language, JapaneseAndMandarinAreRefusedWithAnAlternative) {
  for (const char* code : {"j", "ja", "JA", "z", "zh"}) {
    const Error error = refusal([&] { parse_language(code); });
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << code;
    EXPECT_THAT(error.message(), HasSubstr("send phonemes instead")) << code;
  }
  EXPECT_EQ(refusal([] { language_of_voice("jf_alpha"); }).code(), ErrorCode::unsupported);
  EXPECT_THAT(refusal([] { language_of_voice("zm_yunxi"); }).message(), HasSubstr("Mandarin"));
}

TEST(Language, OtherLanguagesAreRefusedByName) {
  for (const char* code : {"", "x", "aa", "english", "en", "a\n"}) {
    const Error error = refusal([&] { parse_language(code); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << code;
  }
  EXPECT_LT(refusal([] { parse_language(std::string(100'000, 'a')); }).message().size(), 400u);
}

TEST(Language, TheFirstLetterOfAVoiceGivesItsLanguage) {
  EXPECT_EQ(language_of_voice("af_heart"), Language::american);
  EXPECT_EQ(language_of_voice("bm_george"), Language::british);
  EXPECT_EQ(language_of_voice("pf_dora"), Language::portuguese);
  EXPECT_EQ(language_of_voice("ef_dora(2)+am_adam"), Language::spanish);
  for (const char* voice : {"", "xf_nobody", "_", "1"})
    EXPECT_EQ(refusal([&] { language_of_voice(voice); }).code(), ErrorCode::invalid_argument) << voice;
}

}  // namespace
}  // namespace shoal::phonemes
