#include "text/normalise.h"

#include <algorithm>

#include "base/error.h"
#include "text/characters.h"
#include "text/english_amounts.h"
#include "text/english_dates.h"
#include "text/english_digit_groups.h"
#include "text/english_tables.h"
#include "text/english_words.h"

namespace shoal::text {
namespace {

using Rule = std::optional<Spoken> (*)(std::string_view text, size_t at);

// Rules by the character at the position, tried in this order; the first that matches wins.
constexpr Rule kAtDigit[] = {speak_phone_number, speak_date,     speak_digit_groups, speak_time,
                             speak_day_month,    speak_fraction, speak_amount};
constexpr Rule kAtWord[] = {speak_month_day, speak_abbreviation, speak_roman_numeral, speak_money};  // "US$5"
constexpr Rule kAtSign[] = {speak_phone_number, speak_money, speak_fraction};  // "(555) ...", "$5", "½"

// One walk over the text from left to right.
class Walk {
 public:
  Walk(std::string_view text, Brackets brackets) : text_(text), brackets_(brackets) {
    out_.reserve(text.size() + text.size() / 4);
  }

  std::string run() {
    while (at_ < text_.size()) {
      if (const size_t end = std::max(special_token_end(), bracket_end()); end > at_) {
        copy_to(end);
      } else if (!(at_token_start() && speak(speak_address)) && !speak_here()) {
        copy_to(end_of_plain());
      }
    }
    return std::move(out_);
  }

 private:
  bool at_token_start() const {
    return at_ == 0 || std::string_view(" \n\t\r").find(text_[at_ - 1]) != std::string_view::npos;
  }

  // After "<|...|>", or the current position.
  size_t special_token_end() const {
    constexpr size_t kLongest = 64;
    if (!starts_at(text_, at_, "<|")) return at_;
    size_t end = at_ + 2;
    const auto belongs = [](char c) { return is_letter_ascii(c) || is_digit(c) || c == '_' || c == ':'; };
    while (end - at_ < kLongest && belongs(char_at(text_, end))) ++end;
    return starts_at(text_, end, "|>") ? end + 2 : at_;
  }

  // After a bracket that is kept, or the current position.
  size_t bracket_end() const {
    if (brackets_ == Brackets::read || text_[at_] != '[') return at_;
    const size_t end = text_.find_first_of("[]\n", at_ + 1);
    return end != std::string_view::npos && text_[end] == ']' ? end + 1 : at_;
  }

  bool speak_here() {
    if (is_digit(text_[at_])) {
      if (has_wide_neighbour() || !speak_first_of(kAtDigit)) return false;
      say_range();
      return true;
    }
    if (is_letter_ascii(text_[at_])) return !is_word_before(text_, at_) && speak_first_of(kAtWord);
    if (!speak_first_of(kAtSign)) return speak(speak_symbol);
    say_range();
    return true;
  }

  bool has_wide_neighbour() const {
    const size_t end = digits_end(text_, at_);
    const auto is_wide = [&](size_t at) {
      const char32_t c = code_point_at(text_, at);
      return c >= kFirstWideCharacter && is_letter_or_digit(c);
    };
    return (at_ > 0 && is_wide(previous_character(text_, at_))) || (end < text_.size() && is_wide(end));
  }

  template <size_t n>
  bool speak_first_of(const Rule (&rules)[n]) {
    for (const Rule rule : rules) {
      if (speak(rule)) return true;
    }
    return false;
  }

  bool speak(Rule rule) {
    const std::optional<Spoken> spoken = rule(text_, at_);
    if (!spoken) return false;
    CHECK(spoken->end > at_ && spoken->end <= text_.size(), "a rule went from ", at_, " to ", spoken->end);
    say(spoken->words);
    at_ = spoken->end;
    return true;
  }

  // "10-20", "$5–$10", "8:30-9:30", "1939 – 1945": a dash between two numbers is spoken as "to".
  void say_range() {
    const size_t blank = starts_at(text_, at_, " \u2013 ") ? 1 : 0;
    const size_t dash_end = skip_dash(text_, at_ + blank);
    if (dash_end == at_ + blank) return;
    const size_t next = dash_end + blank;
    const Currency* currency = find_currency(text_, next);
    if (!is_digit_at(text_, next + (currency ? currency->symbol.size() : 0))) return;
    say("to");
    at_ = next;
  }

  void say(std::string_view words) {
    if (is_word_before(out_, out_.size()) && is_word_at(words, 0)) out_ += ' ';
    out_ += words;
    spoke_last_ = true;
  }

  // The text that no rule takes up here: a whole word or number, else one character.
  size_t end_of_plain() const {
    if (is_letter_ascii(text_[at_])) return letters_end(text_, at_);
    if (is_digit(text_[at_])) return digits_end(text_, at_);
    return at_ + character_bytes(text_[at_]);
  }

  void copy_to(size_t end) {
    if (spoke_last_ && is_word_at(text_, at_)) out_ += ' ';
    spoke_last_ = false;
    out_ += text_.substr(at_, end - at_);
    at_ = end;
  }

  std::string_view text_;
  const Brackets brackets_;
  size_t at_ = 0;
  std::string out_;
  bool spoke_last_ = false;  // the end of out_ was rewritten, not copied
};

}  // namespace

std::string normalise_english(std::string_view text, Brackets brackets) {
  require_utf8(text);
  // Rewritten words can make a rule match an abbreviation before them ("Dr. 11/21/2026" -> "Dr. November
  // ..."), so repeat until nothing changes; the second pass nearly always changes nothing.
  constexpr int kMostWalks = 4;
  std::string words(text);
  for (int i = 0; i < kMostWalks; ++i) {
    std::string again = Walk(words, brackets).run();
    if (again == words) break;
    words = std::move(again);
  }
  return words;
}

}  // namespace shoal::text
