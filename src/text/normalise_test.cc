#include "text/normalise.h"

#include <gtest/gtest.h>

#include "text/fixtures_testing.h"

namespace shoal::text {
namespace {

struct Case {
  const char* written;
  const char* spoken;
};

void expect_all(std::initializer_list<Case> cases) {
  for (const auto& [written, spoken] : cases) EXPECT_EQ(normalise_english(written), spoken) << written;
}

TEST(NormaliseEnglish, Integers) {
  expect_all({
      {"I have 3 cats.", "I have three cats."},
      {"12,345 people", "twelve thousand three hundred forty-five people"},
      {"1,000,000", "one million"},
      {"It fell to -5 today", "It fell to minus five today"},
      {"(\u22127)", "(minus seven)"},
      {"agent 007", "agent zero zero seven"},
      {"1500000 euros", "one million five hundred thousand euros"},
      {"account 12345678", "account one two three four five six seven eight"},
      {"25000000 times", "twenty-five million times"},
      {"~50 of them", "about fifty of them"},
      {"5 ± 2", "five ± two"},
      {"±2", "plus or minus two"},
      {"ages 18+ only", "ages eighteen plus only"},
      {"1. First, 2. Second", "one. First, two. Second"},
      {"7", "seven"},
      {"4821", "four thousand eight hundred twenty-one"},
  });
}

TEST(NormaliseEnglish, DecimalsAndVersions) {
  expect_all({
      {"Pi is 3.14159.", "Pi is three point one four one five nine."},
      {"0.5 of it", "zero point five of it"},
      {"a .45 caliber", "a point four five caliber"},
      {"1,234.5", "one thousand two hundred thirty-four point five"},
      {"version 1.2.3 is out", "version one point two point three is out"},
      {"at 192.168.0.1", "at one nine two dot one six eight dot zero dot one"},
  });
}

TEST(NormaliseEnglish, Ordinals) {
  expect_all({
      {"the 1st of 22nd and 3rd", "the first of twenty-second and third"},
      {"her 100th birthday", "her one hundredth birthday"},
      {"the 21ST century", "the twenty-first century"},
  });
}

TEST(NormaliseEnglish, YearsAndDecades) {
  expect_all({
      {"in 1984", "in nineteen eighty-four"},
      {"In 2005, and 2024.", "In two thousand five, and twenty twenty-four."},
      {"since 1492", "since fourteen ninety-two"},
      {"1492 ships", "one thousand four hundred ninety-two ships"},
      {"the 1900s", "the nineteen hundreds"},
      {"the 1980s and '90s", "the nineteen eighties and nineties"},
      {"the 2000s, the 80s", "the two thousands, the eighties"},
      {"from 1939-1945", "from nineteen thirty-nine to nineteen forty-five"},
      {"1939 – 1945", "nineteen thirty-nine to nineteen forty-five"},
      {"2024's best", "twenty twenty-four's best"},
  });
}

TEST(NormaliseEnglish, Money) {
  expect_all({
      {"$20", "twenty dollars"},
      {"It's $1.", "It's one dollar."},
      {"$12.50 each", "twelve dollars and fifty cents each"},
      {"$1.01", "one dollar and one cent"},
      {"$0.99", "ninety-nine cents"},
      {"$1,000.00", "one thousand dollars"},
      {"$3.2 million", "three point two million dollars"},
      {"a $5k prize", "a five thousand dollars prize"},
      {"$2bn", "two billion dollars"},
      {"£5", "five pounds"},
      {"£1.50", "one pound and fifty pence"},
      {"€7.99", "seven euros and ninety-nine cents"},
      {"7.99 €", "seven euros and ninety-nine cents"},
      {"20$", "twenty dollars"},
      {"¥500", "five hundred yen"},
      {"US$5", "five US dollars"},
      {"-$5", "minus five dollars"},
      {"$5-10", "five to ten dollars"},
      {"$5–$10", "five dollars to ten dollars"},
      {"$20/month", "twenty dollars per month"},
      {"99¢", "ninety-nine cents"},
      {"5 $10 bills", "five ten dollars bills"},
      {"100 USD", "one hundred US dollars"},
      {"$1.2345", "one point two three four five dollars"},
      {"$2024", "two thousand twenty-four dollars"},
  });
}

TEST(NormaliseEnglish, PercentAndUnits) {
  expect_all({
      {"50%", "fifty percent"},
      {"3.5 % more", "three point five percent more"},
      {"It was 99%. he said.", "It was ninety-nine percent. he said."},
      {"10-20%", "ten to twenty percent"},
      {"5 km", "five kilometers"},
      {"1 km", "one kilometer"},
      {"3.5kg", "three point five kilograms"},
      {"70 mph", "seventy miles per hour"},
      {"120 km/h.", "one hundred twenty kilometers per hour."},
      {"20°C", "twenty degrees Celsius"},
      {"-3 °F", "minus three degrees Fahrenheit"},
      {"turn 90°", "turn ninety degrees"},
      {"5GB", "five gigabytes"},
      {"100 Mbps", "one hundred megabits per second"},
      {"10 ft", "ten feet"},
      {"10 ft. tall", "ten feet tall"},
      {"It is 10 ft.", "It is ten feet."},
      {"5'10\" tall", "five feet ten inches tall"},
      {"a 5-km run", "a five-kilometer run"},
      {"a 5-year-old", "a five-year-old"},
      {"10-20 km", "ten to twenty kilometers"},
      {"2.4 GHz", "two point four gigahertz"},
      {"50 m²", "fifty square meters"},
      {"3x faster", "three times faster"},
      {"3x4", "three by four"},
      {"1920x1080", "nineteen twenty by ten eighty"},
      {"30 min", "thirty minutes"},
      {"250 ms", "two hundred fifty milliseconds"},
      {"2024 km", "two thousand twenty-four kilometers"},
      {"5 in the box", "five in the box"},
      {"5 mice", "five mice"},
      {"5M users", "five million users"},
  });
}

TEST(NormaliseEnglish, Dates) {
  expect_all({
      {"2026-11-21", "November twenty-first, twenty twenty-six"},
      {"on 21 Nov 2026.", "on the twenty-first of November, twenty twenty-six."},
      {"the 21st November", "the twenty-first of November"},
      {"the 4th of July", "the fourth of July"},
      {"November 21, 2026", "November twenty-first, twenty twenty-six"},
      {"Nov. 21st", "November twenty-first"},
      {"November 5-7", "November fifth to seventh"},
      {"Nov 2026", "November twenty twenty-six"},
      {"May 2026", "May twenty twenty-six"},
      {"May 5 was", "May fifth was"},
      {"11/21/2026", "November twenty-first, twenty twenty-six"},
      {"21/11/2026", "November twenty-first, twenty twenty-six"},
      {"11/21/26", "November twenty-first, twenty twenty-six"},
      {"21.11.2026", "November twenty-first, twenty twenty-six"},
      {"13/45/2026", "thirteen slash forty-five slash two thousand twenty-six"},
      {"March 10,000 men", "March ten thousand men"},
      {"They may 5 times", "They may five times"},
      {"until Dec. 25. Then", "until December twenty-fifth. Then"},
      {"due 21 Nov.", "due the twenty-first of November."},
  });
}

TEST(NormaliseEnglish, Times) {
  expect_all({
      {"8:30", "eight thirty"},
      {"at 8:30pm.", "at eight thirty PM."},
      {"8:30 a.m. on Monday", "eight thirty AM on Monday"},
      {"at 8:30 a.m. Then", "at eight thirty AM. Then"},
      {"8 pm", "eight PM"},
      {"12am", "twelve AM"},
      {"14:05", "fourteen oh five"},
      {"14:00", "fourteen hundred"},
      {"8:00", "eight o'clock"},
      {"08:15", "eight fifteen"},
      {"00:00", "midnight"},
      {"8 o'clock", "eight o'clock"},
      {"8:30-9:45", "eight thirty to nine forty-five"},
      {"8:30:15", "eight thirty and fifteen seconds"},
      {"a 3:1 lead", "a three to one lead"},
      {"8 amps", "eight amps"},
      {"25:10", "twenty-five to ten"},
  });
}

TEST(NormaliseEnglish, Fractions) {
  expect_all({
      {"1/2 cup", "one half cup"},
      {"3/4", "three quarters"},
      {"2/3 of", "two thirds of"},
      {"1/2 km", "one half of a kilometer"},
      {"2 1/2 km", "two and a half kilometers"},
      {"1 3/4 cups", "one and three quarters cups"},
      {"½ cup", "one half cup"},
      {"2½ hours", "two and a half hours"},
      {"24/7", "twenty-four seven"},
      {"8/10", "eight out of ten"},
      {"22/7", "twenty-two over seven"},
      {"and/or", "and/or"},
  });
}

TEST(NormaliseEnglish, RangesPhonesAndGroups) {
  expect_all({
      {"10-20", "ten to twenty"},
      {"pages 10–20", "pages ten to twenty"},
      {"call 555-123-4567", "call five five five, one two three, four five six seven"},
      {"555-1234", "five five five, one two three four"},
      {"(555) 123-4567", "five five five, one two three, four five six seven"},
      {"+1 555 123 4567", "plus one, five five five, one two three, four five six seven"},
      {"1-800-555-0100", "one, eight zero zero, five five five, zero one zero zero"},
      {"5551234567", "five five five one two three four five six seven"},
      {"5 - 3", "five - three"},
  });
}

TEST(NormaliseEnglish, NamesOfThings) {
  expect_all({
      {"MP3 and B2B", "MP three and B two B"},
      {"an A380", "an A three eighty"},
      {"H2O", "H two O"},
      {"GPT-4", "GPT-four"},
      {"COVID-19", "COVID-nineteen"},
      {"in 3D and 4K", "in three D and four K"},
      {"1080p", "ten eighty p"},
      {"v2.0", "v two point zero"},
  });
}

TEST(NormaliseEnglish, Abbreviations) {
  expect_all({
      {"Dr. Smith and Mrs. Jones", "Doctor Smith and Missus Jones"},
      {"Mr. X", "Mister X"},
      {"St. Paul lives on Main St. now", "Saint Paul lives on Main Street now"},
      {"12 Elm Dr. is", "twelve Elm Drive is"},
      {"No. 5 and no. 7", "number five and number seven"},
      {"No. I will not.", "No. I will not."},
      {"apples, pears, etc.", "apples, pears, et cetera."},
      {"apples, etc. are", "apples, et cetera are"},
      {"cats vs. dogs", "cats versus dogs"},
      {"fruit, e.g. apples, i.e. food", "fruit, for example apples, that is food"},
      {"Apple Inc. said", "Apple Incorporated said"},
      {"pp. 3-4", "pages three to four"},
      {"Mrs Dalloway", "Mrs Dalloway"},
      {"the U.S. Army", "the U.S. Army"},
  });
}

TEST(NormaliseEnglish, RomanNumerals) {
  expect_all({
      {"Henry VIII's wives", "Henry the eighth's wives"},
      {"Louis XIV", "Louis the fourteenth"},
      {"World War II ended", "World War two ended"},
      {"Part I.", "Part one."},
      {"the Part I like", "the Part I like"},
      {"Chapter IV", "Chapter four"},
      {"Mary I am", "Mary I am"},
      {"Henry Vx", "Henry Vx"},
      {"I, VI, MIX", "I, VI, MIX"},
      {"Henry IIII", "Henry IIII"},
  });
}

TEST(NormaliseEnglish, SignsAndAddresses) {
  expect_all({
      {"#1", "number one"},
      {"#hashtag", "#hashtag"},
      {"salt & pepper", "salt and pepper"},
      {"R&D at AT&T", "R and D at AT and T"},
      {"2 + 2 = 4", "two plus two equals four"},
      {"write to john.doe@example.com.", "write to john dot doe at example dot com."},
      {"(see https://www.example.com/a-b?q=1)",
       "(see example dot com slash a dash b question mark q equals one)"},
      {"on Example.com, now", "on Example dot com, now"},
      {"ask @jo", "ask at jo"},
      {"R&&D &amp;& more", "R and D and more"},
      {"wait--5 more, ##5, ~~5~~", "wait--five more, ##five, ~~five~~"},
      {"2 -5, =-5", "two minus five, =minus five"},
      {"the file.The next", "the file.The next"},
      {">5", "more than five"},
      {"§ 5", "§ five"},
  });
}

TEST(NormaliseEnglish, PlainTextIsUnchanged) {
  for (const char* text : {"",
                           " ",
                           "Hello there, how are you?",
                           "(excited) Oh!\r\n\tReally...  yes",
                           "“Quoted” — ‘text’ … é naïve",
                           "<|speaker:0|>Hi<|im_end|>",
                           "<|semantic:12|>",
                           "[whispering] so",
                           "你好5点，世界",
                           "e\u0301 \U0001F600",
                           "U.S.A.",
                           "a - b",
                           "well-known",
                           "it's",
                           "@",
                           "@@jo",
                           "jo@@@@",
                           "#",
                           "$",
                           "...",
                           "---",
                           "a.b"}) {
    EXPECT_EQ(normalise_english(text), text);
  }
}

}  // namespace
}  // namespace shoal::text
