// Word lists of the English normaliser.
#pragma once

#include <span>
#include <string_view>

namespace shoal::text {

struct Unit {
  std::string_view symbol;
  std::string_view singular, plural;
  enum class Space { allowed, none } space = Space::allowed;  // none: only glued to its number ("5s")
};
// The longest unit that starts at `at` and ends there as a word, or nullptr.
const Unit* find_unit(std::string_view text, size_t at);

struct Currency {
  std::string_view symbol;
  std::string_view singular, plural;
  std::string_view cent, cents;  // empty: none
};
// The currency whose symbol starts at `at`, or nullptr.
const Currency* find_currency(std::string_view text, size_t at);

// "k", "M", "million", ... after an amount of money.
struct Multiplier {
  std::string_view spelling, word;
};
std::span<const Multiplier> money_multipliers();

// A unit that may follow a slash: "month" -> "month", "hr" -> "hour". Empty when it is not listed.
std::string_view find_rate(std::string_view word);

// "Nov", "Sept", "November" -> "November". Empty for other words.
std::string_view find_month(std::string_view word);

// An abbreviation written with a dot after it.
struct Abbreviation {
  std::string_view spelling, words;
  enum class When { always, before_capital, after_capital, before_number } when;
  bool ends_sentences = false;  // its dot can be a full stop as well
};
// The entries for this spelling (without the dot), in the order in which they are tried.
std::span<const Abbreviation> find_abbreviations(std::string_view spelling);
// "Street", "Avenue": the words of an abbreviation that follows a capital.
bool is_said_after_capital(std::string_view word);

// Names of which there were several: "Henry VIII". And things that are counted in Roman numerals: "Part IV".
bool is_regnal_name(std::string_view word);
bool is_counted_in_roman(std::string_view word);

}  // namespace shoal::text
