#include "server/routes/eleven_characters.h"

#include <gtest/gtest.h>
#include <random>

namespace shoal::server {
namespace {

std::string written(const TimedCharacters& times) {
  std::string text;
  for (const std::string& character : times.characters) text += character;
  return text;
}

void append(TimedCharacters& all, const TimedCharacters& more) {
  all.characters.insert(all.characters.end(), more.characters.begin(), more.characters.end());
  all.start_s.insert(all.start_s.end(), more.start_s.begin(), more.start_s.end());
  all.end_s.insert(all.end_s.end(), more.end_s.begin(), more.end_s.end());
}

TEST(CharacterTimes, AWordsCharactersShareItsTime) {
  CharacterTimes text("Hé moon.");
  const TimedCharacters times = text.take({{"Hé", 0.1, 0.3}, {"moon", 0.5, 0.9}, {".", 0.9, 1.0}});
  EXPECT_EQ(times.characters, (std::vector<std::string>{"H", "é", " ", "m", "o", "o", "n", "."}));
  const double ends[] = {0.15, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(times.end_s[i], ends[i], 1e-9) << i;
  EXPECT_EQ(times.start_s[0], 0);
  EXPECT_NEAR(times.start_s[3], 0.5, 1e-9);
  EXPECT_TRUE(text.rest(2).characters.empty());
}

TEST(CharacterTimes, NumbersStandForTheirWords) {
  CharacterTimes text("In 1999 ten sentences.");
  TimedCharacters all = text.take({{"In", 0, 1}, {"nineteen", 1, 2}, {"ninety", 2, 3}, {"nine", 3, 4}});
  EXPECT_EQ(written(all), "In");
  append(all, text.take({{"ten", 4, 5}, {"sentences", 5, 6}}));
  EXPECT_EQ(written(all), "In 1999 ten sentences");
  EXPECT_EQ(all.start_s[8], 4) << "the word that follows";
  EXPECT_EQ(all.start_s[12], 5);
  append(all, text.rest(7));
  EXPECT_EQ(written(all), "In 1999 ten sentences.");
  EXPECT_EQ(all.end_s.back(), 7);
}

TEST(CharacterTimes, AnyWordsGiveTheTextOnceAndInOrder) {
  const std::string letters[] = {"a", "bé", " ", "7", ".", "word", "\n", "🎉", "a7"};
  std::mt19937 random(4);
  for (int run = 0; run < 500; ++run) {
    std::string text;
    std::vector<SpokenWord> words;
    for (unsigned i = random() % 12; i > 0; --i) text += letters[random() % std::size(letters)];
    for (unsigned i = random() % 8; i > 0; --i)
      words.push_back({letters[random() % std::size(letters)], random() % 9 / 4.0, random() % 9 / 4.0});
    CharacterTimes times(text);
    TimedCharacters all;
    for (size_t i = 0; i < words.size(); ++i) append(all, times.take({words[i]}));
    CharacterTimes at_once(text);
    TimedCharacters whole = at_once.take(words);
    append(whole, at_once.rest(3));
    append(all, times.rest(3));
    EXPECT_EQ(written(all), text);
    EXPECT_EQ(all.end_s, whole.end_s) << "in pieces as at once";
    for (size_t i = 0; i < all.characters.size(); ++i) {
      EXPECT_GE(all.end_s[i], all.start_s[i]);
      EXPECT_GE(all.start_s[i] + 1e-9, i > 0 ? all.end_s[i - 1] : 0.0);
    }
  }
}

TEST(SpokenCharacters, HaveSpacesBetweenWordsAndNoneBeforeMarks) {
  EXPECT_EQ(written(spoken_characters({{"Hello", 0, 1}, {"there", 1, 2}, {"!", 2, 2.5}}, 0, true)),
            "Hello there!");
  EXPECT_EQ(written(spoken_characters({{"moon", 3, 4}}, 2.5, false)), " moon");
}

}  // namespace
}  // namespace shoal::server
