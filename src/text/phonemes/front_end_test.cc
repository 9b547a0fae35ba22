#include "text/phonemes/front_end.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"

namespace shoal::phonemes {
namespace {

using ::testing::HasSubstr;

ErrorCode code_of(auto call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

// A folder of its own, gone with the test.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("phonemes_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const char* name, std::string_view text) const { std::ofstream(path_ / name) << text; }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Assigned, not initialised in place: g++ 12 takes a nested temporary for uninitialised.
FrontEndOptions with_dictionaries(const std::string& folder, const std::string& program = "") {
  FrontEndOptions options;
  options.espeak.program = program;
  options.dictionaries = folder;
  return options;
}

constexpr std::string_view kWords =
    R"({"the": "ði", "sky": "skˈI", "above": "əbˈʌv", "port": "pˈɔɹt", "to": "tu",
  "apple": "ˈæpᵊl", "well": "wˈɛl", "known": "nˈOn", "city": "sˈɪɾi", "button": "bˈʌʔn", "is": "ɪz", "five": "fˈIv",
  "dollars": "dˈɑləɹz", "and": "ænd", "wait": "wˈAt", "open": "ˈOpᵊn", "AI": "ˈAˌI"})";

TEST(FrontEnd, APauseAloneIsAChunkWithoutPhonemes) {
  FrontEnd front_end{FrontEndOptions()};
  const std::vector<Chunk> chunks = front_end.chunks("[pause:2s]", {});
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].phonemes, "");
  EXPECT_EQ(chunks[0].pause_after_s, 2);
}

TEST(FrontEnd, DictionaryWordsNeedNoEspeak) {
  const Folder folder;
  folder.write("us_gold.json", kWords);
  FrontEnd front_end(with_dictionaries(folder.path(), "/no/such/program"));
  EXPECT_TRUE(front_end.has_dictionary(Language::american));
  EXPECT_FALSE(front_end.has_dictionary(Language::british));
  EXPECT_FALSE(front_end.has_dictionary(Language::french));
  const auto say = [&](std::string_view text) { return phonemes_of(front_end.tokens(text, {})); };

  EXPECT_EQ(say("The sky above the port."), "ðə skˈI əbˈʌv ðə pˈɔɹt.");
  EXPECT_EQ(say("to the apple"), "tə ði ˈæpᵊl");
  EXPECT_EQ(say("well-known"), "wˌɛlnˈOn");
  EXPECT_EQ(say("OpenAI"), "ˌOpᵊnˈAˌI");
  EXPECT_EQ(say("city button"), "sˈɪTi bˈʌtn");  // the model's letters
  EXPECT_EQ(say("$5"), "fˈIv dˈɑləɹz");
  EXPECT_EQ(say("apple(s) (sky)"), "ˈæpᵊlz (skˈI)");
  EXPECT_EQ(say("[sky](/skI/) is [is](2)"), "skI ɪz ˈɪz");
  EXPECT_EQ(say("\"Wait,\" (the port)..."), "“wˈAt,” (ðə pˈɔɹt)...");
  // Words outside the dictionary need espeak-ng, and the request gets an error.
  EXPECT_EQ(code_of([&] { say("sky unknownword"); }), ErrorCode::unavailable);
}

TEST(FrontEnd, TokensKeepWordsAndTheirPhonemes) {
  const Folder folder;
  folder.write("us_gold.json", kWords);
  FrontEnd front_end(with_dictionaries(folder.path(), "/no/such/program"));
  EXPECT_EQ(front_end.tokens("The sky, $5.", {}), (std::vector<Token>{{"The", "ðə", true},
                                                                      {"sky", "skˈI", false},
                                                                      {",", ",", true},
                                                                      {"five", "fˈIv", true},
                                                                      {"dollars", "dˈɑləɹz", false},
                                                                      {".", ".", false}}));
}

TEST(FrontEnd, ABadFolderOfDictionariesIsRefused) {
  const Folder folder;
  EXPECT_EQ(code_of([] { FrontEnd{with_dictionaries("/no/such/folder")}; }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { FrontEnd{with_dictionaries(folder.path())}; }), ErrorCode::not_found);
  folder.write("gb_silver.json", "{\"a\": 1}");
  EXPECT_EQ(code_of([&] { FrontEnd{with_dictionaries(folder.path())}; }), ErrorCode::corrupt_file);
}

TEST(FrontEnd, StressAndNumberFlagsAreForEnglish) {
  FrontEnd front_end{FrontEndOptions()};
  for (const char* text : {"[hola](+1)", "[120](#&#)"})
    EXPECT_EQ(code_of([&] { front_end.tokens(text, {.language = Language::spanish}); }),
              ErrorCode::unsupported);
}

TEST(FrontEnd, InvalidTextIsRefused) {
  FrontEnd front_end{FrontEndOptions()};
  EXPECT_EQ(code_of([&] { front_end.chunks("a\xff", {}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { front_end.chunks("[pause:1]", {}); }), ErrorCode::invalid_argument);
}

#ifdef SHOAL_BUILD_PHONEMIZER

class WithEspeak : public ::testing::Test {
 protected:
  std::string say(std::string_view text, Language language = Language::american) {
    return phonemes_of(front_end_.tokens(text, {.language = language}));
  }
  FrontEnd front_end_{FrontEndOptions()};
};

TEST_F(WithEspeak, ClauseByClauseWithoutADictionary) {
  EXPECT_EQ(say("The sky above the port."), "ðə skˈI əbˌʌv ðə pˈɔɹt.");
  EXPECT_EQ(say("the color of it"), "ðə kˈʌləɹ ʌv ɪt");  // one r, not two
  EXPECT_EQ(say("I paid $5.50!"), "I pˈAd fˈIv dˈɑləɹz ænd fˈɪfti sˈɛnts!");
  EXPECT_EQ(say("Say [Kokoro](/kˈOkəɹO/) now."), "sˈA kˈOkəɹO nˈW.");
  EXPECT_EQ(say("[120](#&#)"), say("one hundred and twenty"));
  EXPECT_EQ(say("[100](#a#) points"), say("a hundred") + " " + say("points"));
}

TEST_F(WithEspeak, WithoutNormalisationEspeakReadsNumbers) {
  const std::vector<Token> tokens = front_end_.tokens("12", {.normalise = false});
  EXPECT_EQ(phonemes_of(tokens), "twˈɛlv");
  EXPECT_EQ(tokens.at(0).text, "12");
}

TEST_F(WithEspeak, EveryWordHasItsOwnPhonemes) {
  const std::vector<Token> tokens = front_end_.tokens("The nginx port was the best.", {});
  ASSERT_EQ(tokens.size(), 7u);
  EXPECT_EQ(tokens[1], (Token{"nginx", "ˈɛnʤɪn ˌɛks", true}));
  EXPECT_EQ(tokens[3], (Token{"was", "wʌz", false}));
  EXPECT_EQ(tokens[4], (Token{"the", "ðə", true}));
}

TEST_F(WithEspeak, EspeakPronouncesWordsMissingFromTheDictionary) {
  const Folder folder;
  folder.write("us_gold.json", kWords);
  FrontEnd front_end(with_dictionaries(folder.path()));
  EXPECT_EQ(phonemes_of(front_end.tokens("The merchantship above nginx-kubernetes.", {})),
            "ðə mˈɜɹʧəntʃˌɪp əbˈʌv ˌɛnʤɪn ɛkskjˈubəɹnˌits.");
}

TEST_F(WithEspeak, OtherLanguages) {
  EXPECT_EQ(say("El niño (pequeño) llegó.", Language::spanish), "el nˈiɲo (pekˈeɲo) ʎeɣˈo.");
  EXPECT_EQ(say("«Bonjour» [Kokoro](/kokoʁo/)", Language::french), "“bɔ\u0303ʒˈuʁ” kokoʁo");
}

// Whatever comes: no crash, no chunk over the limit, and the tokens are the phonemes.
TEST_F(WithEspeak, HostileTexts) {
  const auto repeat = [](std::string_view unit, size_t bytes) {
    std::string out;
    while (out.size() < bytes) out += unit;
    return out;
  };
  std::vector<std::string> texts = {"", " \n ", "\u200B", "...", "[", "[a](", "{[(<", std::string("a\0b", 3)};
  for (const char* unit : {"x", "[", "[a](", "(a)", "a.", "a-", "5", "\u0301", "aB", "A", "'", "你", "[[((",
                           "b.c. ", "The quick brown fox. ", "a\n"})
    texts.push_back(repeat(unit, 20'000));
  for (const Language language : {Language::american, Language::italian}) {
    for (const std::string& text : texts) {
      for (const Chunk& chunk :
           front_end_.chunks(text, {.language = language, .chunks = {.first_words = 12}})) {
        EXPECT_LE(count_code_points(chunk.phonemes), 510);
        EXPECT_EQ(chunk.phonemes, phonemes_of(chunk.tokens));
        EXPECT_FALSE(chunk.phonemes.empty());
      }
    }
  }
}

#endif

}  // namespace
}  // namespace shoal::phonemes
