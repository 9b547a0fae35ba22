#include "text/scripts.h"

#include <gtest/gtest.h>
#include <vector>

namespace shoal::text {
namespace {

const std::vector<std::string> kEnglish = {"en"};

TEST(Scripts, ReportsTheScriptOfMostLetters) {
  const std::pair<const char*, const char*> texts[] = {
      {"Привет, как дела?", "Cyrillic"},
      {"你好，世界", "Han"},
      {"مرحبا بالعالم", "Arabic"},
      {"こんにちは", "Kana"},
      {"안녕하세요", "Hangul"},
      {"Γεια σου", "Greek"},
      {"नमस्ते", "Devanagari"},
      {"שלום", "Hebrew"},
      {"สวัสดี", "Thai"},
      {"გამარჯობა", "Georgian"},
      {"ሰላም", "of another script"},
      {"𠀀𠀁", "Han"},
      {"Say Здравствуйте.", "Cyrillic"},
      {"ＯＫ привет", "Cyrillic"},
  };
  for (const auto& [text, script] : texts) EXPECT_EQ(foreign_script(text, kEnglish), script) << text;
}

TEST(Scripts, ATextMostlyInAKnownScriptIsFine) {
  for (const char* text : {"Hello there.", "Übung, façade, Łódź, tiếng Việt", "Say Привет to Anna.",
                           "12 + 30 = 42", "?!", "", "Ａｂｃ", "½ µ", "🎉", "d'où №"})
    EXPECT_EQ(foreign_script(text, kEnglish), "") << text;
}

TEST(Scripts, LanguagesGiveTheKnownScripts) {
  const std::string russian = "Привет", japanese = "漢字かな", chinese = "漢字";
  EXPECT_EQ(foreign_script(russian, std::vector<std::string>{"en", "ru"}), "");
  EXPECT_EQ(foreign_script("Hello", std::vector<std::string>{"ru"}), "Latin");
  EXPECT_EQ(foreign_script(japanese, std::vector<std::string>{"ja"}), "");
  EXPECT_EQ(foreign_script("かなかな", std::vector<std::string>{"zh"}), "Kana");
  EXPECT_EQ(foreign_script(chinese, std::vector<std::string>{"ja"}), "");
}

TEST(Scripts, UnknownLanguagesCauseNoWarning) {
  EXPECT_EQ(foreign_script("Привет", {}), "");
  EXPECT_EQ(foreign_script("Привет", std::vector<std::string>{"en", "xx"}), "");
}

}  // namespace
}  // namespace shoal::text
