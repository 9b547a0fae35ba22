#include "text/phonemes/markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/utf8.h"

namespace shoal::phonemes {
namespace {

std::string lines_of(std::string_view text) {
  std::string out;
  for (const Line& line : split_lines(text)) {
    out += "<" + line.text + ">";
    if (line.pause_after_s > 0) out += std::to_string(line.pause_after_s).substr(0, 4);
  }
  return out;
}

std::string spans_of(std::string_view text) {
  std::string out;
  for (const Span& span : split_links(text)) {
    out += "<" + span.text;
    if (span.phonemes) out += "|" + *span.phonemes;
    if (span.stress) out += "!" + std::to_string(*span.stress).substr(0, 4);
    if (!span.number_flags.empty()) out += "#" + span.number_flags;
    out += ">";
  }
  return out;
}

ErrorCode markup_code(auto call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(Pauses, SeparateLinesAndAddUp) {
  EXPECT_EQ(lines_of("One.[pause:1.5s] Two."), "<One.>1.50<Two.>");
  EXPECT_EQ(lines_of("[pause:0.25s]One."), "<>0.25<One.>");
  EXPECT_EQ(lines_of("One.[pause:1s][pause:2s]\nTwo."), "<One.>3.00<Two.>");
  EXPECT_EQ(lines_of("One. [pause:0s] Two."), "<One.><Two.>");
  EXPECT_EQ(lines_of("a\n\n  \r\nb\u2028c"), "<a><b><c>");
  EXPECT_EQ(lines_of(" \n "), "");
  EXPECT_EQ(lines_of(""), "");
}

TEST(Pauses, InvalidPausesAreRefused) {
  for (const char* text :
       {"[pause:]", "[pause:s]", "[pause:1.5]", "[pause:1.5 s]", "[pause:-1s]", "[pause:1e1s]",
        "[pause:nans]", "[pause:infs]", "[pause:60.1s]", "[pause:40s][pause:21s]",
        "[pause:", "[pause:99999999999999999999999999999999999s]", "[pause:1s", "[pause:0x10s]"}) {
    EXPECT_EQ(markup_code([&] { split_lines(text); }), ErrorCode::invalid_argument) << text;
  }
  std::string many;
  for (int i = 0; i < 11; ++i) many += "x[pause:60s]";
  EXPECT_EQ(markup_code([&] { split_lines(many); }), ErrorCode::invalid_argument);
  EXPECT_EQ(lines_of("[pause:60s]"), "<>60.0");
  EXPECT_EQ(markup_code([] { split_lines("\xff"); }), ErrorCode::invalid_argument);
}

TEST(ShortLines, AreCutBetweenSentencesButNotWithinLinks) {
  std::string sentences;
  for (int i = 0; i < 500; ++i) sentences += "A line of many words. ";
  const std::vector<Line> lines = split_short_lines("Short.\n" + sentences + "[pause:2s]");
  ASSERT_GT(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "Short.");
  std::string again;
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_LE(lines[i].text.size(), 4000u);
    EXPECT_EQ(lines[i].pause_after_s, i + 1 == lines.size() ? 2 : 0);
    again += lines[i].text + ' ';
  }
  EXPECT_EQ(again, sentences);

  const std::vector<Line> linked = split_short_lines(sentences + "[" + sentences + "](/x/). " + sentences);
  ASSERT_GT(linked.size(), 3u);
  for (const Line& line : linked)
    EXPECT_EQ(line.text.find('[') != std::string::npos, line.text.find("](/x/)") != std::string::npos);
}

TEST(Links, SetPhonemesStressOrFlags) {
  EXPECT_EQ(spans_of("Say [Kokoro](/kˈOkəɹO/) now"), "<Say ><Kokoro|kˈOkəɹO>< now>");
  EXPECT_EQ(spans_of("[a](+1)[b](-2)[c](0.5)[d]( -0.5 )"), "<a!1.00><b!-2.0><c!0.50><d!-0.5>");
  EXPECT_EQ(spans_of("[120](#&a#)"), "<120#&a>");
  EXPECT_EQ(spans_of("[two words](/tˈu wˈɜɹdz/)"), "<two words|tˈu wˈɜɹdz>");
}

TEST(Links, AnAddressIsDroppedAndItsTextSpoken) {
  EXPECT_EQ(spans_of("see [our page](https://x.org/a_b) now"), "<see ><our page>< now>");
  EXPECT_EQ(spans_of("[text]()"), "<text>");
}

TEST(Links, OtherBracketsAreText) {
  for (const char* text : {"[a]", "[a] (b)", "a](b)", "[](b)", "[a](b", "(a)[b]", "[", "]", "[a[b]c]"})
    EXPECT_EQ(spans_of(text), std::string("<") + text + ">") << text;
  EXPECT_EQ(spans_of("[[a](/b/)](/c/)"), "<[><a|b><](/c/)>");
  EXPECT_EQ(spans_of(""), "");
}

TEST(Links, InvalidValuesAreRefused) {
  for (const char* text : {"[a](3)", "[a](0.7)", "[a](-3)", "[a](//)", "[a](/ /)", "[a](#x#)", "[a](#&n1#)"})
    EXPECT_EQ(markup_code([&] { split_links(text); }), ErrorCode::invalid_argument) << text;
}

TEST(Links, UnbalancedBracketsKeepTheText) {
  // Without a meaningful target, the spoken text is the text without the brackets of the links.
  for (const char* unit : {"[", "]", "(", "[a](", "[[((", "][)("}) {
    std::string text;
    while (text.size() < 50'000) text += unit;
    std::string joined;
    for (const Span& span : split_links(text)) joined += span.text;
    EXPECT_EQ(joined, text) << unit;
  }
}

TEST(NumberFlags, InsertAndAsInBritishEnglish) {
  EXPECT_EQ(apply_number_flags("one hundred twenty", "&"), "one hundred and twenty");
  EXPECT_EQ(apply_number_flags("one thousand five", "&"), "one thousand and five");
  EXPECT_EQ(apply_number_flags("two thousand one hundred five", "&"), "two thousand one hundred and five");
  EXPECT_EQ(apply_number_flags("one hundred thousand", "&"), "one hundred thousand");
  EXPECT_EQ(apply_number_flags("one hundred twenty", "n"), "one hundred 'n' twenty");
  EXPECT_EQ(apply_number_flags("one hundred twenty", "a"), "a hundred twenty");
  EXPECT_EQ(apply_number_flags("one hundred", "a&"), "a hundred");
  EXPECT_EQ(apply_number_flags("one", "a&"), "one");
  EXPECT_EQ(apply_number_flags("five hundred point one", "&"), "five hundred point one");
  EXPECT_EQ(apply_number_flags("", "&"), "");
}

TEST(Clean, ControlsBecomeSpacesAndInvisibleCharactersVanish) {
  EXPECT_EQ(clean("a\x01"
                  "b\x7f"
                  "c"),
            "a b c");
  EXPECT_EQ(clean("don’t soft\u00ADhyphen\u200B\uFEFF"), "don't softhyphen");
  EXPECT_EQ(clean("\uE000x\U000F0000"), " x ");
  EXPECT_EQ(clean("naïve 你好 😀"), "naïve 你好 😀");
  EXPECT_EQ(clean(std::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(clean("Ｈｉ！你好。ok（１２）"), "Hi! 你好. ok(12)");
  EXPECT_EQ(clean("cafe\u0301 oﬃce"), "café office");
}

}  // namespace
}  // namespace shoal::phonemes
