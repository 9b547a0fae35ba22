#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "text/characters.h"
#include "text/numbers.h"
#include "text/ssml/ssml.h"
#include "text/utf8.h"

namespace shoal::ssml {
namespace {

using text::spell_digits;

constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 8> kDateFormats = {"mdy", "dmy", "ymd", "md", "dm", "ym", "my", "y"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void refuse_text(std::string_view what, std::string_view text) {
  fail(ErrorCode::invalid_argument, "interpret-as \"", what, "\" does not fit \"", printable(text), "\"");
}

// "A1 b" -> "A, one, b"
std::string spell_characters(std::string_view content) {
  std::string words;
  for (size_t at = 0; at < content.size();) {
    size_t end = at + text::character_bytes(content[at]);
    while (end < content.size() && text::is_combining_mark(text::code_point_at(content, end)))
      end += text::character_bytes(content[end]);
    const std::string_view one = content.substr(at, end - at);
    at = end;
    if (one == " ") continue;
    if (!words.empty()) words += ", ";
    words += one.size() == 1 && is_digit(one[0]) ? spell_digits(one) : std::string(one);
  }
  return words;
}

// Digits one by one, groups apart: "+1 (555) 010-9" -> "plus one, five five five, zero one zero, nine".
std::string speak_digits(std::string_view what, std::string_view content, bool groups) {
  std::string words;
  bool any = false;
  for (size_t at = 0; at < content.size();) {
    size_t end = at;
    while (end < content.size() && is_digit(content[end])) ++end;
    if (end > at) {
      if (any) words += groups ? ", " : " ";
      words += spell_digits(content.substr(at, end - at));
      any = true;
      at = end;
      continue;
    }
    if (content[at] == '+' && !any && groups)
      words += "plus ";
    else if (std::string_view(" -./()").find(content[at]) == std::string_view::npos)
      refuse_text(what, content);
    ++at;
  }
  if (!any) refuse_text(what, content);
  return words;
}

// Digits with commas between thousands, a sign, and a fraction.
std::string speak_number(std::string_view what, std::string_view content, bool ordinal) {
  std::string digits;
  std::string_view rest = content;
  std::string words;
  if (rest.starts_with('-') || rest.starts_with('+')) {
    words = rest[0] == '-' ? "minus " : "plus ";
    rest.remove_prefix(1);
  }
  const size_t point = std::min(rest.find('.'), rest.size());
  for (const char c : rest.substr(0, point))
    if (c != ',') digits += c;
  const std::string_view fraction = rest.substr(std::min(point + 1, rest.size()));
  const bool is_whole = point == rest.size();
  const bool fits = !digits.empty() && std::ranges::all_of(digits, is_digit) &&
                    std::ranges::all_of(fraction, is_digit) && (is_whole || !fraction.empty());
  if (!fits || (ordinal && (!is_whole || !words.empty()))) refuse_text(what, content);
  if (ordinal) return text::spell_ordinal(digits);
  return words + (is_whole ? text::spell_integer(digits) : text::spell_decimal(digits, fraction));
}

int number_of(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() && digits.size() <= 4 ? value : -1;
}

std::vector<std::string_view> fields_of(std::string_view content) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t end = std::min(content.find_first_of("-/. "), content.size());
    fields.push_back(content.substr(0, end));
    if (end == content.size()) return fields;
    content.remove_prefix(end + 1);
  }
}

std::string speak_date(std::string_view format, std::string_view content) {
  if (format.empty() && content.size() == 10 && content[4] == '-') format = "ymd";
  if (format.empty()) return std::string(content);  // the rules for texts read it
  if (std::ranges::find(kDateFormats, format) == kDateFormats.end())
    fail(ErrorCode::unsupported, "format: expected mdy, dmy, ymd, md, dm, ym, my or y, got \"",
         printable(format), "\"");
  const std::vector<std::string_view> fields = fields_of(content);
  if (fields.size() != format.size()) refuse_text("date", content);
  std::string month, day, year;
  for (size_t i = 0; i < format.size(); ++i) {
    const int value = number_of(fields[i]);
    const int most = format[i] == 'm' ? 12 : format[i] == 'd' ? 31 : 9999;
    if (value < (format[i] == 'y' ? 0 : 1) || value > most) refuse_text("date", content);
    if (format[i] == 'm') month = kMonths[static_cast<size_t>(value) - 1];
    if (format[i] == 'd') day = text::spell_ordinal(fields[i]);
    if (format[i] == 'y') year = text::spell_year(value);
  }
  std::string words = month;
  if (!day.empty()) words += " " + day;
  if (!year.empty()) words += (words.empty() ? "" : day.empty() ? " " : ", ") + year;
  return words;
}

}  // namespace

std::string say_as(std::string_view what, std::string_view format, std::string_view content) {
  if (!format.empty() && what != "date") fail(ErrorCode::unsupported, "format: only a date has one here");
  if (what == "characters" || what == "spell-out" || what == "verbatim") return spell_characters(content);
  if (what == "digits") return speak_digits(what, content, false);
  if (what == "telephone") return speak_digits(what, content, true);
  if (what == "cardinal" || what == "number") return speak_number(what, content, false);
  if (what == "ordinal") return speak_number(what, content, true);
  if (what == "date") return speak_date(format, content);
  fail(ErrorCode::unsupported,
       "interpret-as: expected characters, spell-out, verbatim, digits, telephone, cardinal, number, ordinal "
       "or date, got \"",
       printable(what), "\"");
}

}  // namespace shoal::ssml
