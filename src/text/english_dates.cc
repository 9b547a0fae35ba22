#include "text/english_dates.h"

#include <array>

#include "base/error.h"
#include "text/english_tables.h"
#include "text/numbers.h"

namespace shoal::text {
namespace {

constexpr std::string_view kMonthNumbers[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

bool is_day(int day) { return day >= 1 && day <= 31; }

std::string day_words(int day) { return spell_ordinal(std::to_string(day)); }

std::optional<std::string> date_words(int year, int month, int day) {
  if (month < 1 || month > 12 || !is_day(day)) return std::nullopt;
  return concat(find_month(kMonthNumbers[month - 1]), " ", day_words(day), ", ", spell_year(year));
}

// Three groups of digits with one kind of separator, and no further group.
struct ThreeGroups {
  std::array<std::string_view, 3> digits;
  char separator;
  size_t end;
};
std::optional<ThreeGroups> read_three_groups(std::string_view text, size_t at) {
  ThreeGroups groups{};
  for (size_t i = 0; i < 3; ++i) {
    const size_t end = digits_end(text, at);
    if (end == at || end - at > 4) return std::nullopt;
    groups.digits[i] = text.substr(at, end - at);
    groups.end = end;
    if (i == 2) break;
    if (i == 1 && char_at(text, end) != groups.separator) return std::nullopt;
    groups.separator = char_at(text, end);
    at = end + 1;
  }
  const bool goes_on = char_at(text, groups.end) == groups.separator && is_digit_at(text, groups.end + 1);
  if (goes_on || is_word_at(text, groups.end)) return std::nullopt;
  return groups;
}

// After "st", "nd", "rd" or "th", or `at` itself.
size_t skip_ordinal_suffix(std::string_view text, size_t at) {
  for (const std::string_view suffix : {"st", "nd", "rd", "th"}) {
    if (starts_at(text, at, suffix) && !is_word_at(text, at + 2)) return at + 2;
  }
  return at;
}

// A day of the month with an optional ordinal suffix: "21", "21st". Its end, or `at` when there is none.
size_t day_end(std::string_view text, size_t at) {
  const size_t end = digits_end(text, at);
  if (end == at || end - at > 2 || !is_day(small_value(text.substr(at, end - at)))) return at;
  return skip_ordinal_suffix(text, end);
}
int day_at(std::string_view text, size_t at) {
  return small_value(text.substr(at, digits_end(text, at) - at));
}

// " 2026" or ", 2026": the year in words and its end.
std::optional<Spoken> read_year(std::string_view text, size_t at) {
  if (char_at(text, at) == ',') ++at;
  const size_t begin = skip_blank(text, at), end = digits_end(text, begin);
  if (begin == at || end - begin != 4 || text[begin] == '0' || is_word_at(text, end)) return std::nullopt;
  if (char_at(text, end) == '.' && is_digit_at(text, end + 1)) return std::nullopt;
  return Spoken{spell_year(small_value(text.substr(begin, 4))), end};
}

// Whether the digits that end here are more than a day: "10,000", "5.5", "5:30", "5%".
bool is_more_than_a_day(std::string_view text, size_t end) {
  if (is_word_at(text, end) || char_at(text, end) == '%' || char_at(text, end) == '/') return true;
  const char mark = char_at(text, end);
  return (mark == ',' || mark == '.' || mark == ':') && is_digit_at(text, end + 1);
}

struct Meridiem {
  std::string_view words;
  size_t end;
};
// "am", " PM", " a.m.": a dot that is a full stop as well stays.
std::optional<Meridiem> read_meridiem(std::string_view text, size_t at) {
  at = skip_blank(text, at);
  const char half = char_at(text, at);
  const bool morning = half == 'a' || half == 'A';
  if (!morning && half != 'p' && half != 'P') return std::nullopt;
  const bool dotted = char_at(text, ++at) == '.';
  at += dotted;
  if (char_at(text, at) != 'm' && char_at(text, at) != 'M') return std::nullopt;
  if (is_word_at(text, ++at)) return std::nullopt;
  if (dotted && char_at(text, at) == '.' && !is_also_full_stop(text, at)) ++at;
  return Meridiem{morning ? "AM" : "PM", at};
}

std::string time_words(int hour, int minute, bool has_meridiem) {
  if (hour == 0 && minute == 0 && !has_meridiem) return "midnight";
  const std::string hours = spell_integer(std::to_string(hour));
  if (minute >= 10) return hours + " " + spell_integer(std::to_string(minute));
  if (minute > 0) return hours + " oh " + spell_integer(std::to_string(minute));
  if (has_meridiem) return hours;
  return hours + (hour <= 12 ? " o'clock" : " hundred");
}

// ":05" and the like: its end, or `at`.
size_t sixtieths_end(std::string_view text, size_t at) {
  const bool matches = char_at(text, at) == ':' && char_at(text, at + 1) <= '5' &&
                       is_digit_at(text, at + 1) && is_digit_at(text, at + 2) && !is_digit_at(text, at + 3);
  return matches ? at + 3 : at;
}

}  // namespace

std::optional<Spoken> speak_date(std::string_view text, size_t at) {
  const std::optional<ThreeGroups> groups = read_three_groups(text, at);
  if (!groups) return std::nullopt;
  const auto& [a, b, c] = groups->digits;
  const int first = small_value(a), second = small_value(b), third = small_value(c);
  std::optional<std::string> words;
  if (groups->separator == '-' && a.size() == 4 && b.size() == 2 && c.size() == 2) {
    words = date_words(first, second, third);
  } else if (a.size() <= 2 && b.size() <= 2 &&
             (c.size() == 4 || (c.size() == 2 && groups->separator == '/'))) {
    constexpr int kPivot = 70;  // two-digit years: 1970 to 2069
    const int year = c.size() == 4 ? third : third + (third < kPivot ? 2000 : 1900);
    if (groups->separator == '/') words = date_words(year, first, second);
    if (groups->separator == '.' || (groups->separator == '/' && !words))
      words = date_words(year, second, first);
  }
  if (!words) return std::nullopt;
  return Spoken{*words, groups->end};
}

std::optional<Spoken> speak_day_month(std::string_view text, size_t at) {
  size_t end = day_end(text, at);
  const size_t word = skip_blank(text, end);
  if (end == at || word == end) return std::nullopt;
  const size_t name = starts_at(text, word, "of ") ? word + 3 : word;
  end = letters_end(text, name);
  const std::string_view month = find_month(text.substr(name, end - name));
  if (month.empty() || is_word_at(text, end)) return std::nullopt;
  const std::string_view before = previous_word(text, at);
  std::string words = before == "the" || before == "The" ? "" : "the ";
  words += concat(day_words(day_at(text, at)), " of ", month);
  const size_t dot = end;
  if (char_at(text, dot) == '.' && end - name < month.size()) ++end;
  if (const auto year = read_year(text, end)) return Spoken{words + ", " + year->words, year->end};
  if (end > dot && is_also_full_stop(text, dot)) end = dot;
  return Spoken{words, end};
}

std::optional<Spoken> speak_month_day(std::string_view text, size_t at) {
  size_t end = letters_end(text, at);
  const std::string month(find_month(text.substr(at, end - at)));
  if (month.empty()) return std::nullopt;
  if (char_at(text, end) == '.' && end - at < month.size()) ++end;
  if (const auto year = read_year(text, end); year && char_at(text, end) != ',')
    return Spoken{month + " " + year->words, year->end};
  const size_t day = skip_blank(text, end);
  if (day == end) return std::nullopt;
  end = day_end(text, day);
  if (end == day || is_more_than_a_day(text, end)) return std::nullopt;
  std::string words = month + " " + day_words(day_at(text, day));
  const size_t last = skip_dash(text, end), last_end = day_end(text, last);
  if (last > end && last_end > last && !is_more_than_a_day(text, last_end)) {
    words += " to " + day_words(day_at(text, last));
    end = last_end;
  }
  if (const auto year = read_year(text, end)) return Spoken{words + ", " + year->words, year->end};
  return Spoken{words, end};
}

std::optional<Spoken> speak_time(std::string_view text, size_t at) {
  size_t end = digits_end(text, at);
  if (end - at > 2) return std::nullopt;
  const int hour = small_value(text.substr(at, end - at));
  const size_t minutes = end;
  end = sixtieths_end(text, minutes);
  const bool has_minutes = end > minutes;
  const auto meridiem = hour >= 1 && hour <= 12 ? read_meridiem(text, end) : std::nullopt;
  if (hour > 24 || !(has_minutes || meridiem)) return std::nullopt;

  const int minute = has_minutes ? small_value(text.substr(minutes + 1, 2)) : 0;
  const size_t seconds = end;
  end = has_minutes ? sixtieths_end(text, seconds) : end;
  const bool has_seconds = end > seconds;
  if (!meridiem && is_word_at(text, end)) return std::nullopt;
  std::string words = time_words(hour, minute, meridiem.has_value() && !has_seconds);
  if (has_seconds) {
    const std::string_view digits = text.substr(seconds + 1, 2);
    words += concat(" and ", spell_integer(digits), small_value(digits) == 1 ? " second" : " seconds");
  }
  const auto half = has_seconds && hour >= 1 && hour <= 12 ? read_meridiem(text, end) : meridiem;
  if (!half) return Spoken{words, end};
  return Spoken{concat(words, " ", half->words), half->end};
}

}  // namespace shoal::text
