#include "server/routes/eleven_characters.h"

#include <algorithm>
#include <utility>

namespace shoal::server {
namespace {

bool is_letter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

void TimedCharacters::add(std::string_view text, double from_s, double to_s) {
  const auto count = static_cast<double>(std::ranges::count_if(text, begins_character));
  const double step = std::max(0.0, to_s - from_s) / std::max(1.0, count);
  double at = from_s;
  for (const char c : text) {
    if (!begins_character(c) && !characters.empty()) {
      characters.back() += c;
      continue;
    }
    characters.emplace_back(1, c);
    start_s.push_back(at);
    end_s.push_back(at += step);
  }
}

// A word that is missed stands for a part of the text without white space: a word may be found as many parts
// ahead.
size_t CharacterTimes::find(std::string_view word) const {
  int parts = 0;
  for (size_t at = position_; at < text_.size() && parts <= missed_ + 1; ++at) {
    const bool blank = text_[at] == ' ' || text_[at] == '\n' || text_[at] == '\t';
    if (blank && at > position_) ++parts;
    if (text_.compare(at, word.size(), word) != 0) continue;
    const size_t end = at + word.size();
    const bool cut_before = at > position_ && is_letter(text_[at - 1]) && is_letter(word.front());
    const bool cut_after = end < text_.size() && is_letter(text_[end]) && is_letter(word.back());
    if (!cut_before && !cut_after) return at;
  }
  return std::string::npos;
}

TimedCharacters CharacterTimes::take(const std::vector<SpokenWord>& words) {
  TimedCharacters times;
  for (const SpokenWord& word : words) {
    const size_t at = word.word.empty() ? std::string::npos : find(word.word);
    if (at == std::string::npos) {
      ++missed_;
      continue;
    }
    missed_ = 0;
    const double start_s = std::max(time_s_, word.start_s), end_s = std::max(start_s, word.end_s);
    times.add(std::string_view(text_).substr(position_, at - position_), time_s_, start_s);
    // White space before a word has the silence before it; without any, the word begins with it.
    times.add(word.word, at > position_ ? start_s : time_s_, end_s);
    position_ = at + word.word.size();
    time_s_ = end_s;
  }
  return times;
}

TimedCharacters CharacterTimes::rest(double end_s) {
  TimedCharacters times;
  const double last_s = std::max(time_s_, end_s);
  times.add(std::string_view(text_).substr(position_), time_s_, last_s);
  if (position_ < text_.size()) time_s_ = last_s;
  position_ = text_.size();
  return times;
}

void CharacterTimes::begin(std::string text, double at_s) {
  text_ = std::move(text);
  position_ = 0;
  missed_ = 0;
  time_s_ = std::max(time_s_, at_s);
}

TimedCharacters spoken_characters(const std::vector<SpokenWord>& words, double from_s, bool first) {
  TimedCharacters times;
  for (const SpokenWord& word : words) {
    if (word.word.empty()) continue;
    const double start_s = std::max(from_s, word.start_s), end_s = std::max(start_s, word.end_s);
    const bool apart = !std::exchange(first, false) && is_letter(word.word.front());
    if (apart) times.add(" ", from_s, start_s);
    times.add(word.word, apart ? start_s : from_s, end_s);
    from_s = end_s;
  }
  return times;
}

}  // namespace shoal::server
