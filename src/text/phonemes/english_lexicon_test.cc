#include "text/phonemes/english_lexicon.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal::phonemes {
namespace {

constexpr std::string_view kGold = R"({
  "sky": "skˈI", "above": "əbˈʌv", "the": "ði", "to": "tu", "am": "æm", "in": "ɪn", "a": "A",
  "by": {"DEFAULT": "bI", "None": "bˈI"}, "used": {"DEFAULT": "jˈuzd", "VBD": "jˈust"},
  "it": "ɪt", "US": {"DEFAULT": "ˌʌs", "NOUN": null}, "IS": {"DEFAULT": "ɪz", "NOUN": null},
  "London": "lˈʌndən", "versus": "vˈɜɹsəs", "read": {"DEFAULT": "ɹˈid", "VBD": "ɹˈɛd"},
  "cat": "kˈæt", "dog": "dˈɔɡ", "bus": "bˈʌs", "city": "sˈɪɾi", "wait": "wˈAt", "want": "wˈɑnt", "love": "lˈʌv",
  "stop": "stˈɑp", "play": "plˈA", "enter": "ˈɛntə", "NASA": "nˈæsə"})";
constexpr std::string_view kSilver = R"({"sky": "WRONG", "zebra": "zˈibɹə"})";

EnglishLexicon lexicon(bool british = false) {
  std::vector<Dictionary> dictionaries;
  dictionaries.push_back(Dictionary::parse(kGold, "gold"));
  dictionaries.push_back(Dictionary::parse(kSilver, "silver"));
  return {std::move(dictionaries), british};
}

std::string say(std::string_view word, const WordContext& context = {.next_starts_with_vowel = false}) {
  return lexicon().pronounce(word, context).value_or("?");
}

const WordContext kBeforeVowel{.next_starts_with_vowel = true};
const WordContext kClauseEnd{};

TEST(EnglishLexicon, GoldTakesPrecedenceOverSilver) {
  EXPECT_EQ(say("sky"), "skˈI");
  EXPECT_EQ(say("zebra"), "zˈibɹə");
  EXPECT_EQ(say("qwert"), "?");
}

TEST(EnglishLexicon, SomeFormsDependOnTheNextWord) {
  EXPECT_EQ(say("the"), "ðə");
  EXPECT_EQ(say("The", kBeforeVowel), "ði");
  EXPECT_EQ(say("a"), "ɐ");
  EXPECT_EQ(say("a", kClauseEnd), "ˈA");
  EXPECT_EQ(say("A"), "ˈA");
  EXPECT_EQ(say("A", {.next_starts_with_vowel = false, .at_clause_start = true}), "ɐ");
  EXPECT_EQ(say("an", kBeforeVowel), "ɐn");
  EXPECT_EQ(say("to"), "tə");
  EXPECT_EQ(say("to", kBeforeVowel), "tʊ");
  EXPECT_EQ(say("to", kClauseEnd), "tu");
  EXPECT_EQ(say("in"), "ɪn");
  EXPECT_EQ(say("in", kClauseEnd), "ˈɪn");
  EXPECT_EQ(say("am"), "ɐm");
  EXPECT_EQ(say("am", kClauseEnd), "æm");
  EXPECT_EQ(say("by"), "bI");
  EXPECT_EQ(say("by", kClauseEnd), "bˈI");
  EXPECT_EQ(say("I"), "ˌI");
  EXPECT_EQ(say("vs"), "vˈɜɹsəs");
  EXPECT_EQ(say("used", {.next_starts_with_vowel = false, .next_word = "to"}), "jˈust");
  EXPECT_EQ(say("used"), "jˈuzd");
}

TEST(EnglishLexicon, CapitalsMeanStressOrInitialisms) {
  EXPECT_EQ(say("It"), "ˌɪt");  // a capital: a little
  EXPECT_EQ(say("london"), "lˈʌndən");
  EXPECT_EQ(say("SKY"), "skˈI");
  EXPECT_EQ(say("US"), "jˌuˈɛs");  // no phonemes as a noun
  EXPECT_EQ(say("US", {.next_starts_with_vowel = false, .among_capitals = true}), "ˈʌs");
  EXPECT_EQ(say("IS"), "ˈɪz");
  EXPECT_EQ(say("NASA"), "nˈæsə");
  EXPECT_EQ(say("GPU"), "ʤˌipˌijˈu");
  EXPECT_EQ(say("GPUs"), "ʤˌipˌijˈuz");
  EXPECT_EQ(say("U.S.A."), "jˌuˌɛsˈA");
  EXPECT_EQ(say("Ph.D"), "pˌiˌAʧdˈi");
  EXPECT_EQ(say("KUBERNETES"), "?");
  EXPECT_EQ(say("GPU", {.next_starts_with_vowel = false, .among_capitals = true}), "?");
}

TEST(EnglishLexicon, ReadsEndingsOnKnownStems) {
  EXPECT_EQ(say("cats"), "kˈæts");
  EXPECT_EQ(say("dogs"), "dˈɔɡz");
  EXPECT_EQ(say("dog's"), "dˈɔɡz");
  EXPECT_EQ(say("buses"), "bˈʌsᵻz");
  EXPECT_EQ(say("cities"), "sˈɪɾiz");
  EXPECT_EQ(say("waited"), "wˈAɾᵻd");   // a flap after a vowel
  EXPECT_EQ(say("wanted"), "wˈɑntᵻd");  // not after n
  EXPECT_EQ(say("loved"), "lˈʌvd");
  EXPECT_EQ(say("stopped"), "stˈɑpt");
  EXPECT_EQ(say("played"), "plˈAd");
  EXPECT_EQ(say("loving"), "lˈʌvɪŋ");
  EXPECT_EQ(say("stopping"), "stˈɑpɪŋ");
  EXPECT_EQ(say("waiting"), "wˈAɾɪŋ");
  EXPECT_EQ(say("Waiting"), "wˈAɾɪŋ");
  EXPECT_EQ(lexicon(true).pronounce("buses", kBeforeVowel), "bˈʌsɪz");
  EXPECT_EQ(lexicon(true).pronounce("waited", kBeforeVowel), "wˈAtɪd");
  EXPECT_EQ(lexicon(true).pronounce("entering", kBeforeVowel), std::nullopt);  // its r is for espeak-ng
}

TEST(EnglishLexicon, ExplicitStressWins) {
  EXPECT_EQ(say("sky", {.next_starts_with_vowel = false, .stress = -2}), "skI");
  EXPECT_EQ(say("the", {.next_starts_with_vowel = false, .stress = 2}), "ðˈi");
  EXPECT_EQ(say("It", {.next_starts_with_vowel = false, .stress = -1}), "ɪt");
}

TEST(EnglishLexicon, WithoutDictionariesEveryWordIsUnknown) {
  EXPECT_FALSE(EnglishLexicon().knows_words());
  EXPECT_EQ(EnglishLexicon().pronounce("sky", {}), std::nullopt);
  EXPECT_EQ(EnglishLexicon().pronounce("", {}), std::nullopt);
  EXPECT_THROW(EnglishLexicon::read("/no/such/folder", false), Error);
}

TEST(Dictionary, RefusesInvalidFiles) {
  for (const char* json : {"[]", "1", "{\"a\": 1}", "{\"a\": \"\"}", "{\"\": \"a\"}", "{\"a\": {}}",
                           "{\"a\": {\"NOUN\": \"x\"}}", "{\"a\": {\"DEFAULT\": null}}",
                           "{\"a\": {\"DEFAULT\": \"x\", \"VERB\": 3}}", "{\"a\": \"x\", \"a\": \"y\"}",
                           "{\"a\": \"x\\n\"}", "{\"a\": \"x\"", "{\"a\": [\"x\"]}", ""}) {
    try {
      Dictionary::parse(json, "words.json");
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt_file) << json;
      EXPECT_NE(error.message().find("words.json"), std::string::npos) << error.message();
    }
  }
  EXPECT_THROW(Dictionary::parse("{\"a\": \"" + std::string(1000, 'x') + "\"}", "words.json"), Error);
}

TEST(Dictionary, FindsExactlyItsWords) {
  std::string json = "{";
  for (int i = 0; i < 3000; ++i)
    json += (i ? ",\"w" : "\"w") + std::to_string(i * 7) + "\":\"p" + std::to_string(i) + "\"";
  const Dictionary dictionary = Dictionary::parse(json + "}", "many.json");
  EXPECT_EQ(dictionary.size(), 3000u);
  for (int i = 0; i < 3000; ++i) {
    EXPECT_EQ(dictionary.find("w" + std::to_string(i * 7))->phonemes, "p" + std::to_string(i));
    EXPECT_FALSE(dictionary.find("w" + std::to_string(i * 7 + 1)));
  }
}

}  // namespace
}  // namespace shoal::phonemes
