// When each character of a text is heard, made of the times of its words.
#pragma once

#include <string>
#include <vector>

#include "server/body/value.h"
#include "shoal/speech.h"

namespace shoal::server {

struct TimedCharacters {
  std::vector<std::string> characters;  // of UTF-8
  std::vector<double> start_s, end_s;   // each begins where the one before it ends

  // Adds the characters of `text`, evenly spread over that time; a time that runs backwards is none.
  void add(std::string_view text, double from_s, double to_s);
};

// Gives out the characters of a text once and in order, word by word. Words that the text does not have
// (numbers are spoken as words) share the time of the characters that stand in their place.
class CharacterTimes {
 public:
  explicit CharacterTimes(std::string text = "") : text_(std::move(text)) {}

  // Up to the last of these words, which follow those of earlier calls.
  TimedCharacters take(const std::vector<SpokenWord>& words);
  // What is left, until `end_s`.
  TimedCharacters rest(double end_s);
  double time_s() const { return time_s_; }  // where the last character ended
  // Another text follows at that time.
  void begin(std::string text, double at_s);

 private:
  size_t find(std::string_view word) const;

  std::string text_;
  size_t position_ = 0;
  double time_s_ = 0;
  int missed_ = 0;  // words in a row that the text does not have
};

// The words as they are spoken, with spaces between them, after `from_s`. first: nothing was spoken before.
TimedCharacters spoken_characters(const std::vector<SpokenWord>& words, double from_s, bool first);

}  // namespace shoal::server
