#include "text/phonemes/markup.h"

#include <charconv>

#include "base/error.h"
#include "base/printable.h"
#include "text/characters.h"
#include "text/nfc.h"
#include "text/phonemes/code_points.h"
#include "text/sentences.h"

namespace shoal::phonemes {
namespace {

constexpr std::string_view kPause = "[pause:";
constexpr int kLongLineBytes = 4000;

// Seconds of the pause that starts at `at`; moves `at` past it.
double read_pause(std::string_view text, size_t& at) {
  const std::string_view rest = text.substr(at + kPause.size(), 32);
  double seconds = 0;
  const char* const end = rest.data() + rest.size();
  const auto read = std::from_chars(rest.data(), end, seconds, std::chars_format::fixed);
  const bool complete =
      read.ec == std::errc() && end - read.ptr >= 2 && read.ptr[0] == 's' && read.ptr[1] == ']';
  if (!complete || !(seconds >= 0))
    fail(ErrorCode::invalid_argument, "input: expected a pause like [pause:1.5s], got \"",
         printable(text.substr(at, 40)), "\"");
  at += kPause.size() + static_cast<size_t>(read.ptr - rest.data()) + 2;
  return seconds;
}

void add_pause(std::vector<Line>& lines, double seconds) {
  if (lines.empty()) lines.emplace_back();
  lines.back().pause_after_s += seconds;
  if (lines.back().pause_after_s > kMaxPauseS)
    fail(ErrorCode::invalid_argument, "input: a pause of at most ", kMaxPauseS, " s expected, got ",
         lines.back().pause_after_s, " s");
}

void check_pauses(const std::vector<Line>& lines) {
  double seconds = 0;
  for (const Line& line : lines) seconds += line.pause_after_s;
  if (seconds > kMaxPausesS)
    fail(ErrorCode::invalid_argument, "input: pauses of at most ", kMaxPausesS, " s in all expected, got ",
         seconds, " s");
}

// A cut after `text` may be inside a link.
bool ends_in_brackets(std::string_view text) {
  const size_t open = text.rfind('[');
  return open != std::string_view::npos && text.find(')', open) == std::string_view::npos;
}

// Sentences of a long line, as many together as are short.
std::vector<std::string> parts_of(std::string_view line) {
  std::vector<std::string> parts;
  bool goes_on = false;
  for (const std::string& piece : text::split_utterances(line, kLongLineBytes)) {
    if (goes_on)
      parts.back() += ' ' + piece;
    else
      parts.push_back(piece);
    goes_on = ends_in_brackets(parts.back());
  }
  return parts;
}

void read_target(std::string_view target, Span& span) {
  const auto is_between = [&](char mark) {
    return target.size() >= 2 && target.front() == mark && target.back() == mark;
  };
  if (is_between('/')) {
    span.phonemes = text::strip_white_space(target.substr(1, target.size() - 2));
    if (span.phonemes->empty())
      fail(ErrorCode::invalid_argument, "input: no phonemes between the slashes of [", printable(span.text),
           "](//)");
    return;
  }
  if (is_between('#')) {
    span.number_flags = target.substr(1, target.size() - 2);
    if (span.number_flags.find_first_not_of("&na") != std::string::npos)
      fail(ErrorCode::invalid_argument, "input: number flags are &, n and a, got \"", printable(target),
           "\"");
    return;
  }
  const std::string_view digits = target.starts_with('+') ? target.substr(1) : target;
  double stress = 0;
  const auto read =
      std::from_chars(digits.data(), digits.data() + digits.size(), stress, std::chars_format::fixed);
  if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return;
  for (const double known : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0}) {
    if (stress == known) span.stress = stress;
  }
  if (!span.stress)
    fail(ErrorCode::invalid_argument, "input: a stress is -2, -1, -0.5, 0, 0.5, 1 or 2, got \"",
         printable(target), "\"");
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view known : words) {
    if (word == known) return true;
  }
  return false;
}

std::vector<std::string_view> split_at_spaces(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    if (space != 0) words.push_back(text.substr(0, space));
    if (space == std::string_view::npos) break;
    text.remove_prefix(space + 1);
  }
  return words;
}

bool is_scale(std::string_view word) {
  return is_one_of(word, {"hundred", "thousand", "million", "billion", "trillion"});
}

// Whether "and" belongs before words[i]: after "hundred", or after a larger scale when less than a hundred
// follows.
bool wants_and(const std::vector<std::string_view>& words, size_t i) {
  if (i == 0 || is_scale(words[i]) || is_one_of(words[i], {"and", "point"})) return false;
  if (words[i - 1] == "hundred") return true;
  if (!is_scale(words[i - 1])) return false;
  for (size_t k = i; k < words.size() && words[k] != "point"; ++k) {
    if (is_scale(words[k])) return false;
  }
  return true;
}

constexpr char32_t kWideForms = 0xFF00;  // U+FF01 to U+FF5E correspond to '!' to '~'

// For marks written without a following space, and for ligatures; empty for other characters.
std::string_view narrow_form(char32_t c) {
  switch (c) {
    case U'。':
      return ". ";
    case U'、':
    case U'，':
      return ", ";
    case U'！':
      return "! ";
    case U'？':
      return "? ";
    case U'；':
      return "; ";
    case U'：':
      return ": ";
    case 0xFB00:
      return "ff";
    case 0xFB01:
      return "fi";
    case 0xFB02:
      return "fl";
    case 0xFB03:
      return "ffi";
    case 0xFB04:
      return "ffl";
    case 0xFB05:
    case 0xFB06:
      return "st";
    default:
      return {};
  }
}

}  // namespace

std::vector<Line> split_lines(std::string_view text) {
  text::require_utf8(text);
  std::vector<Line> lines;
  const auto add = [&](std::string_view line) {
    line = text::strip_white_space(line);
    if (!line.empty()) lines.push_back({std::string(line), 0});
  };
  size_t begin = 0;
  size_t at = 0;
  while (at < text.size()) {
    const size_t here = at;
    if (text.substr(at).starts_with(kPause)) {
      const double seconds = read_pause(text, at);
      add(text.substr(begin, here - begin));
      add_pause(lines, seconds);
      begin = at;
      continue;
    }
    const char32_t c = text::code_point_at(text, at);
    at += text::character_bytes(text[at]);
    if (c != U'\n' && c != U'\r' && c != 0x2028 && c != 0x2029) continue;
    add(text.substr(begin, here - begin));
    begin = at;
  }
  add(text.substr(begin));
  check_pauses(lines);
  return lines;
}

std::vector<Line> split_short_lines(std::string_view text) {
  std::vector<Line> lines;
  for (Line& line : split_lines(text)) {
    if (line.text.size() <= static_cast<size_t>(kLongLineBytes)) {
      lines.push_back(std::move(line));
      continue;
    }
    for (std::string& part : parts_of(line.text)) lines.push_back({.text = std::move(part)});
    lines.back().pause_after_s = line.pause_after_s;
  }
  return lines;
}

std::vector<Span> split_links(std::string_view line) {
  std::vector<Span> spans;
  size_t plain = 0;  // the text from here on is in no span yet
  const auto add_plain = [&](size_t end) {
    if (end > plain) spans.push_back({std::string(line.substr(plain, end - plain)), {}, {}, {}});
  };
  size_t close_paren = 0;  // the first one at or after the last searched position
  for (size_t open = line.find('['); open != std::string_view::npos; open = line.find('[', open)) {
    // The innermost bracket is the link's, so that no character is looked at twice.
    const size_t close = line.find_first_of("[]", open + 1);
    if (close == std::string_view::npos) break;
    const bool is_link = line[close] == ']' && close > open + 1 && line.substr(close + 1).starts_with('(');
    if (is_link && close_paren < close) close_paren = line.find(')', close);
    if (!is_link || close_paren == std::string_view::npos) {
      open = line[close] == '[' ? close : close + 1;
      continue;
    }
    add_plain(open);
    Span span{std::string(line.substr(open + 1, close - open - 1)), {}, {}, {}};
    read_target(text::strip_white_space(line.substr(close + 2, close_paren - close - 2)), span);
    spans.push_back(std::move(span));
    plain = open = close_paren + 1;
  }
  add_plain(line.size());
  return spans;
}

std::string apply_number_flags(std::string_view words, std::string_view flags) {
  const bool says_a = flags.find('a') != std::string_view::npos;
  const bool says_n = flags.find('n') != std::string_view::npos;
  const bool says_and = says_n || flags.find('&') != std::string_view::npos;
  const std::vector<std::string_view> list = split_at_spaces(words);
  std::string out;
  for (size_t i = 0; i < list.size(); ++i) {
    if (says_and && wants_and(list, i)) out += says_n ? " 'n'" : " and";
    if (i > 0) out += ' ';
    const bool is_one_of_a_scale = i == 0 && list.size() > 1 && list[0] == "one" && is_scale(list[1]);
    out += says_a && is_one_of_a_scale ? "a" : list[i];
  }
  return out;
}

std::string clean(std::string_view line) {
  const std::string text = text::to_nfc(line);
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); at += text::character_bytes(text[at])) {
    const char32_t c = text::code_point_at(text, at);
    const bool is_silent = c == 0xAD || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
                           (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF || (c >= 0xFE00 && c <= 0xFE0F) ||
                           (c >= 0xE0000 && c <= 0xE01EF);
    const bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0xE000 && c <= 0xF8FF) ||
                            c >= 0xF0000 || (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF);
    if (is_silent) continue;
    if (is_control) {
      out += ' ';
    } else if (c == U'’' || c == U'‘' || c == U'ʼ' || c == 0xFF07) {
      out += '\'';
    } else if (const std::string_view narrow = narrow_form(c); !narrow.empty()) {
      out += narrow;
    } else if (c > kWideForms && c <= kWideForms + 0x7E - 0x20) {
      out += static_cast<char>(c - kWideForms + 0x20);
    } else {
      text::append_utf8(out, c);
    }
  }
  return out;
}

}  // namespace shoal::phonemes
