#include "text/english_digit_groups.h"

#include <algorithm>
#include <vector>

#include "text/numbers.h"

namespace shoal::text {
namespace {

constexpr size_t kPhoneGroups = 4;  // one more than the shapes below have

// Digit by digit, a pause between groups.
std::string groups_words(const std::vector<std::string_view>& groups) {
  std::string words;
  for (const std::string_view group : groups) words += (words.empty() ? "" : ", ") + spell_digits(group);
  return words;
}

// Runs of digits with `separator` between them, at most `most` of them; `end` is after the last.
std::vector<std::string_view> read_groups(std::string_view text, size_t at, char separator, size_t most,
                                          size_t& end) {
  std::vector<std::string_view> groups;
  while (true) {
    end = digits_end(text, at);
    groups.push_back(text.substr(at, end - at));
    if (groups.size() == most || char_at(text, end) != separator || !is_digit_at(text, end + 1))
      return groups;
    at = end + 1;
  }
}

bool have_sizes(const std::vector<std::string_view>& groups, std::initializer_list<size_t> sizes) {
  return std::equal(groups.begin(), groups.end(), sizes.begin(), sizes.end(),
                    [](std::string_view group, size_t size) { return group.size() == size; });
}

// "+44 20 7946 0958", "+1 (555) 123-4567".
std::optional<Spoken> speak_international_number(std::string_view text, size_t at) {
  constexpr size_t kFewestDigits = 8, kMostDigits = 15;  // ITU E.164
  std::vector<std::string_view> groups;
  size_t digits = 0, end = at + 1;
  for (size_t next = at + 1; is_digit_at(text, next);) {
    end = digits_end(text, next);
    groups.push_back(text.substr(next, end - next));
    digits += end - next;
    if (digits > kMostDigits) return std::nullopt;
    next = end;
    for (int marks = 0; marks < 2 && std::string_view(" -.()").find(char_at(text, next)) < 5; ++marks) ++next;
  }
  if (digits < kFewestDigits || is_word_at(text, end)) return std::nullopt;
  return Spoken{"plus " + groups_words(groups), end};
}

}  // namespace

std::optional<Spoken> speak_phone_number(std::string_view text, size_t at) {
  if (char_at(text, at) == '+') return speak_international_number(text, at);
  size_t end = at;
  if (char_at(text, at) == '(') {
    const size_t close = digits_end(text, at + 1), rest = skip_blank(text, close + 1);
    if (close != at + 4 || char_at(text, close) != ')' || !is_digit_at(text, rest)) return std::nullopt;
    std::vector<std::string_view> groups = read_groups(text, rest, '-', kPhoneGroups, end);
    groups.insert(groups.begin(), text.substr(at + 1, 3));
    if (!have_sizes(groups, {3, 3, 4}) || is_word_at(text, end)) return std::nullopt;
    return Spoken{groups_words(groups), end};
  }
  if (digits_end(text, at) != at + 3) return std::nullopt;
  for (const char separator : {'-', '.', ' '}) {
    const std::vector<std::string_view> groups = read_groups(text, at, separator, kPhoneGroups, end);
    if (!have_sizes(groups, {3, 3, 4}) && !(separator == '-' && have_sizes(groups, {3, 4}))) continue;
    if (!is_word_at(text, end)) return Spoken{groups_words(groups), end};
  }
  return std::nullopt;
}

std::optional<Spoken> speak_digit_groups(std::string_view text, size_t at) {
  for (const char separator : {'-', '.', '/'}) {
    size_t end = at;
    const std::vector<std::string_view> groups = read_groups(text, at, separator, text.size(), end);
    if (groups.size() < 3) continue;
    if (separator == '-') return Spoken{groups_words(groups), end};
    const bool address = separator == '.' && groups.size() == 4;  // an IP address
    const std::string_view mark = separator == '/' ? " slash " : address ? " dot " : " point ";
    std::string words;
    for (const std::string_view group : groups) {
      if (!words.empty()) words += mark;
      words += address ? spell_digits(group) : spell_integer(group);
    }
    return Spoken{words, end};
  }
  return std::nullopt;
}

}  // namespace shoal::text
