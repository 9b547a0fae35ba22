#include "text/phonemes/stress.h"

#include <gtest/gtest.h>

namespace shoal::phonemes {
namespace {

TEST(ApplyStress, ByTheTable) {
  struct Case {
    const char* from;
    double stress;
    const char* to;
  };
  for (const Case& c : {Case{"kˈOkəɹˌO", -2, "kOkəɹO"},
                        {"kˈOkəɹˌO", -1, "kˌOkəɹO"},
                        {"kˈOkəɹˌO", 0, "kˌOkəɹO"},
                        {"kˈOkəɹˌO", -0.5, "kˌOkəɹO"},
                        {"kˈOkəɹˌO", 0.5, "kˈOkəɹˌO"},
                        {"kˈOkəɹˌO", 2, "kˈOkəɹˌO"},
                        {"skI", -0.5, "skI"},
                        {"skI", 0, "skˌI"},
                        {"skI", 0.5, "skˌI"},
                        {"skI", 1, "skˌI"},
                        {"skI", 2, "skˈI"},
                        {"skˌI", 0.5, "skˌI"},
                        {"skˌI", 1, "skˈI"},
                        {"skˌI", 2, "skˈI"},
                        {"hm", 2, "hm"},
                        {"", 2, ""}})
    EXPECT_EQ(apply_stress(c.from, c.stress), c.to) << c.from << " " << c.stress;
}

TEST(GlueCompound, HalfOfTooManyPrimaryStressesFall) {
  EXPECT_EQ(glue_compound({"wˈɛl", "nˈOn"}), "wˌɛlnˈOn");  // the lighter one: O counts twice
  EXPECT_EQ(glue_compound({"stˈAt", "ʌv", "ðə", "ˈɑɹt"}), "stˈAtʌvðəˈɑɹt");  // two of four may stay
  EXPECT_EQ(glue_compound({"wˈʌn"}), "wˈʌn");
  EXPECT_EQ(glue_compound({}), "");
}

TEST(SpellLetters, TheLastLetterIsStressed) {
  EXPECT_EQ(spell_letters("GPU", false), "ʤˌipˌijˈu");
  EXPECT_EQ(spell_letters("gpu", true), "ʤˌiːpˌiːjˈuː");
  EXPECT_EQ(spell_letters("Z", false), "zˈi");
  EXPECT_EQ(spell_letters("Z", true), "zˈɛd");
  EXPECT_EQ(spell_letters("1-", true), "");
}

TEST(StartsWithVowel, SkipsStressMarks) {
  EXPECT_TRUE(starts_with_vowel("ˈæpᵊl"));
  EXPECT_TRUE(starts_with_vowel("ɐn"));
  EXPECT_FALSE(starts_with_vowel("jˈuz"));
  EXPECT_FALSE(starts_with_vowel(""));
}

}  // namespace
}  // namespace shoal::phonemes
