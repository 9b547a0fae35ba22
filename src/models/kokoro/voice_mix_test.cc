#include "models/kokoro/voice_mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/archives_testing.h"

namespace shoal::kokoro {
namespace {

using testing::HasSubstr;
using weights::code_of;
using weights::message_of;

bool is_voice(std::string_view name) {
  for (const std::string_view known :
       {"af_bella", "af_sky", "x", "y", "bm_george", "my-voice", "my", "two words"}) {
    if (name == known) return true;
  }
  return false;
}
VoiceMix parse(std::string_view expression) {
  return parse_voice_mix(expression, [](std::string_view name) { return is_voice(name); });
}

// "x 0.5, y -0.25"
std::string shares(std::string_view expression) {
  std::string text;
  for (const VoiceMix::Part& part : parse(expression).parts)
    text += concat(text.empty() ? "" : ", ", part.voice, " ", part.share);
  return text;
}

TEST(VoiceMix, OneVoice) {
  for (const char* expression : {"x", " x ", "x(3)", "x + x", "x(1)+x(2.5)", "x,x"}) {
    const VoiceMix mix = parse(expression);
    EXPECT_TRUE(mix.is_one_voice()) << expression;
    EXPECT_EQ(mix.key(), "x") << expression;
  }
  EXPECT_EQ(shares("two words"), "two words 1");
}

TEST(VoiceMix, WeightsOfAnySignAreDividedByTheirSum) {
  EXPECT_EQ(shares("af_bella(2)+af_sky(1)-x"),
            "af_bella 0.5, af_sky 0.25, x -0.25");  // as Kokoro-FastAPI 0.8 does
  EXPECT_EQ(shares("x+y"), "x 0.5, y 0.5");
  EXPECT_EQ(shares("x(0.25) + y( .75 )"), "x 0.25, y 0.75");
  EXPECT_EQ(shares("y-x"), "x -0.5, y 0.5");
  EXPECT_EQ(shares("x(3)-x(1)"), "x 0.5") << "half of a voice is not the voice";
  EXPECT_FALSE(parse("x(3)-x(1)").is_one_voice());
  EXPECT_EQ(shares("x+y-y"), "x 0.333333");
}

TEST(VoiceMix, AListIsAMean) {
  EXPECT_EQ(shares("x,y"), "x 0.5, y 0.5");
  EXPECT_EQ(shares("x, y, x, af_sky"), "af_sky 0.25, x 0.5, y 0.25");
}

TEST(VoiceMix, EqualMixesHaveEqualKeys) {
  EXPECT_EQ(parse("x(2)+y(4)").key(), parse("y(2) + x").key());
  EXPECT_EQ(parse("x,y").key(), parse("y+x").key());
  EXPECT_NE(parse("x+y").key(), parse("x-y").key());
  EXPECT_NE(parse("x-y").key(), parse("y-x").key());
  EXPECT_NE(parse("x(3)-x").key(), "x");
  EXPECT_EQ(parse("y+x").first, "y");
  EXPECT_EQ(parse("bm_george(0.1)+af_sky").first, "bm_george");
}

TEST(VoiceMix, TheLongestKnownNameMatches) {
  EXPECT_EQ(shares("my-voice"), "my-voice 1");
  EXPECT_EQ(shares("my-x"), "my 0.5, x -0.5");
  EXPECT_EQ(shares("my-voice-my"), "my -0.5, my-voice 0.5");
  EXPECT_EQ(shares("x-my-voice(3)"), "my-voice -0.75, x 0.25");
}

TEST(VoiceMix, ErrorsNameTheWrongPart) {
  struct Case {
    const char *expression, *part;
    ErrorCode code = ErrorCode::invalid_argument;
  };
  const Case cases[] = {
      {"", "at its beginning"},
      {"  ", "at its beginning"},
      {"+x", "at its beginning"},
      {"-x", "at its beginning"},
      {"(2)x", "at its beginning"},
      {"x+", "after '+'"},
      {"x-", "after '-'"},
      {"x,", "after ','"},
      {"x++y", "after '+'"},
      {"x+-y", "after '+'"},
      {"x,,y", "after ','"},
      {"x(2", "(2"},
      {"x(2))", "before \")\""},
      {"x(2)(3)", "before \"(3)\""},
      {"x(2)y", "before \"y\""},
      {"x()", "got \"\""},
      {"x(0)", "got \"0\""},
      {"x(-1)", "got \"-1\""},
      {"x(+1)", "got \"+1\""},
      {"x(1e3)", "got \"1e3\""},
      {"x(nan)", "got \"nan\""},
      {"x(inf)", "got \"inf\""},
      {"x(0x10)", "got \"0x10\""},
      {"x(1,5)", "got \"1,5\""},
      {"x(2000000)", "got \"2000000\""},
      {"x-x", "nothing is left"},
      {"x,y+x", "plain mean"},
      {"x,y(2)", "plain mean"},
      {"z", "no voice \"z\"", ErrorCode::not_found},
      {"x+zz(2)", "no voice \"zz\"", ErrorCode::not_found},
      {"x-z-y", "no voice \"z\"", ErrorCode::not_found},
      {"../x", "no voice \"../x\"", ErrorCode::not_found},
      {"x y", "no voice \"x y\"", ErrorCode::not_found},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(code_of([&] { parse(c.expression); }), c.code) << c.expression;
    EXPECT_THAT(message_of([&] { parse(c.expression); }), HasSubstr(c.part)) << c.expression;
  }
}

TEST(VoiceMix, SizesAreBounded) {
  std::string many = "x";
  for (int i = 1; i < 32; ++i) many += "+y";
  EXPECT_EQ(code_of([&] { parse(many); }), std::nullopt);
  EXPECT_EQ(code_of([&] { parse(many + "+y"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { parse("x(" + std::string(3000, '1') + ")"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { parse(std::string(2048, '-')); }), ErrorCode::invalid_argument);
  EXPECT_LT(message_of([&] { parse(std::string(2000, 'z')); }).size(), 500u);
}

TEST(VoiceNames, TheFirstTwoLettersGiveLanguageAndSex) {
  for (const char language : std::string("abefhijpz")) {
    for (const char sex : {'f', 'm'}) {
      const auto traits = traits_of(std::string{language, sex} + "_name");
      ASSERT_TRUE(traits) << language << sex;
      EXPECT_EQ(traits->language, language);
      EXPECT_EQ(traits->sex, sex);
    }
    EXPECT_EQ(traits_of(published_default(language))->language, language);
  }
  for (const char* name : {"", "af", "af_", "afx", "ax_name", "cf_name", "AF_name", "af-name", "narrator"})
    EXPECT_FALSE(traits_of(name)) << name;
  for (const char letter : {'c', 'A', '\0', ' '}) EXPECT_EQ(published_default(letter), "");
}

}  // namespace
}  // namespace shoal::kokoro
