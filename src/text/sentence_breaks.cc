#include "text/sentence_breaks.h"

#include <algorithm>
#include <string>

#include "text/characters.h"
#include "text/utf8.h"

namespace shoal::text {
namespace {

constexpr std::u32string_view kTerminators = U".!?\u2026\u203C\u2047\u2048\u2049\u061F\u06D4\u0964\u0965";
// Of scripts without spaces: they end a sentence in every case.
constexpr std::u32string_view kFullWidthTerminators = U"\u3002\uFF01\uFF1F\uFF0E\uFF61";
constexpr std::u32string_view kClauseMarks = U",;:\u2014\u2013\u061B\u060C";
constexpr std::u32string_view kFullWidthClauseMarks = U"\uFF0C\uFF1B\uFF1A\u3001\uFF64\u2014";
constexpr std::u32string_view kClosers =
    U"\"')]}\u201D\u2019\u00BB\u203A\u300D\u300F\u3011\u300B\u3009\uFF09\uFF3D\uFF5D";
constexpr std::u32string_view kOpeners =
    U"\"'([{\u201C\u2018\u00AB\u00BF\u00A1\u300C\u300E\u3010\u300A\uFF08*_";
constexpr size_t kLongestMarker = 48;  // bytes of a bracket that is kept in one piece
constexpr size_t kLongestTag = 200;    // the same of a square one, which may be a sentence (S2)

// Compared in lower case, without the last dot.
constexpr std::string_view kNeverEnd[] = {
    "mr",   "mrs",  "ms",     "mx",   "dr",   "prof", "rev", "hon",    "gen", "col",  "maj",
    "capt", "cmdr", "lt",     "sgt",  "cpl",  "pvt",  "adm", "gov",    "sen", "rep",  "pres",
    "st",   "mt",   "ft",     "vs",   "cf",   "viz",  "ca",  "approx", "est", "dept", "univ",
    "assn", "bros", "messrs", "mmes", "supt", "eg",   "ie",  "al",     "ed",  "eds",  "trans"};
// End a sentence when a capital follows.
constexpr std::string_view kMayEnd[] = {"etc", "inc",  "ltd", "co",   "corp", "llc", "jr",  "sr", "esq",
                                        "ave", "blvd", "rd",  "ph.d", "a.m",  "p.m", "b.c", "a.d"};
// Belong to a number that follows.
constexpr std::string_view kBeforeNumbers[] = {"no",  "nos", "vol", "fig",  "figs", "ch",  "pp",  "p",
                                               "art", "sec", "eq",  "jan",  "feb",  "mar", "apr", "jun",
                                               "jul", "aug", "sep", "sept", "oct",  "nov", "dec"};

bool contains(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

template <typename List>
bool lists(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

class BreakFinder {
 public:
  explicit BreakFinder(std::string_view text) : text_(text) {}

  std::vector<Break> find() {
    size_t at = 0;
    while (at < text_.size()) {
      const char32_t c = code_point_at(text_, at);
      if (is_white_space(c)) {
        at = white_space(at);
      } else if (contains(kTerminators, c) || contains(kFullWidthTerminators, c)) {
        at = terminator(at);
      } else if (contains(kClauseMarks, c) || contains(kFullWidthClauseMarks, c)) {
        at = clause_mark(at, c);
      } else {
        if (c == '(' || c == '[') protect_marker(at);
        at += character_bytes(text_[at]);
      }
    }
    return std::move(breaks_);
  }

 private:
  bool at_end(size_t at) const { return at >= text_.size(); }
  char32_t peek(size_t at) const { return at_end(at) ? U'\n' : code_point_at(text_, at); }

  size_t skip(size_t at, std::u32string_view set) const {
    while (!at_end(at) && contains(set, peek(at))) at += character_bytes(text_[at]);
    return at;
  }

  // The first character of the next word, after blanks and opening quotes; '\n' at the end of the text.
  char32_t next_word_start(size_t at) const {
    for (int looked = 0; !at_end(at) && looked < 16; ++looked) {
      const char32_t c = peek(at);
      if (!is_white_space(c) && !contains(kOpeners, c)) return c;
      at += character_bytes(text_[at]);
    }
    return U'\n';
  }

  void add(size_t position, BreakLevel level) {
    if (position >= protected_until_) breaks_.push_back({position, level});
  }

  // A short bracket is a marker or an aside: kept whole.
  void protect_marker(size_t at) {
    if (at < protected_until_) return;
    const size_t longest = text_[at] == '[' ? kLongestTag : kLongestMarker;
    for (size_t i = at + 1; i < text_.size() && i - at < longest && text_[i] != '\n'; ++i) {
      if (text_[i] != ')' && text_[i] != ']') continue;
      protected_until_ = i + 1;
      return;
    }
  }

  size_t white_space(size_t begin) {
    size_t at = begin;
    int newlines = 0;
    bool breakable = false;
    while (!at_end(at) && is_white_space(peek(at))) {
      const char32_t c = peek(at);
      newlines += c == '\n' || c == 0x2028 || c == 0x2029;
      breakable |= c != 0xA0 && c != 0x202F;
      at += character_bytes(text_[at]);
    }
    // A single line end before a lower-case letter is a wrapped line.
    const bool wrapped =
        newlines == 1 && is_letter(peek(at)) && !is_upper(peek(at)) && peek(at) < kFirstWideCharacter;
    if (newlines > 0 && !wrapped) {
      add(begin, BreakLevel::sentence);
    } else if (breakable) {
      add(begin, BreakLevel::space);
    }
    return at;
  }

  size_t clause_mark(size_t at, char32_t mark) {
    const size_t end = skip(at + character_bytes(text_[at]), kClosers);
    if (is_white_space(peek(end)) || contains(kFullWidthClauseMarks, mark)) add(end, BreakLevel::clause);
    return end;
  }

  size_t terminator(size_t begin) {
    size_t at = begin;
    bool full_width = false;
    while (!at_end(at) && (contains(kTerminators, peek(at)) || contains(kFullWidthTerminators, peek(at)))) {
      full_width |= contains(kFullWidthTerminators, peek(at));
      at += character_bytes(text_[at]);
    }
    const size_t end = skip(at, kClosers);
    const char32_t next = peek(end);
    if (full_width) {
      add(end, BreakLevel::sentence);
    } else if (is_white_space(next) || next >= kFirstWideCharacter) {
      if (text_.substr(begin, at - begin) != "." || is_full_stop(begin, end)) {
        const char32_t start = next_word_start(end);
        const bool goes_on = is_letter(start) && !is_upper(start) && start < kFirstWideCharacter;
        add(end, goes_on ? BreakLevel::clause : BreakLevel::sentence);
      }
    }
    return end;
  }

  // Whether the single dot at `dot` can end a sentence; `after` is the position after it and its closing
  // quotes.
  bool is_full_stop(size_t dot, size_t after) const {
    const std::string word = word_before(dot);
    const char32_t next = next_word_start(after);
    if (word.empty()) return !is_list_number(dot);
    if (lists(kNeverEnd, word)) return false;
    if (lists(kMayEnd, word)) return is_upper(next) || next == '\n';
    if (lists(kBeforeNumbers, word)) return !is_decimal_digit(next);
    const bool acronym = word.size() >= 3 && word[word.size() - 2] == '.';  // U.S., e.g.
    if (acronym) return next == '\n';
    const bool is_initial = word.size() == 1 && is_upper(peek(dot - 1)) && peek(dot - 1) != 'I';
    return !is_initial;
  }

  // ASCII letters and inner dots before `dot`, in lower case; empty when there are none or too many.
  std::string word_before(size_t dot) const {
    const auto is_ascii_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
    size_t begin = dot;
    while (begin > 0 && dot - begin < 12 && (is_ascii_letter(text_[begin - 1]) || text_[begin - 1] == '.'))
      --begin;
    std::string word(text_.substr(begin, dot - begin));
    for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return word;
  }

  // "1." at the start of a line.
  bool is_list_number(size_t dot) const {
    size_t begin = dot;
    while (begin > 0 && dot - begin < 4 && text_[begin - 1] >= '0' && text_[begin - 1] <= '9') --begin;
    return begin < dot && (begin == 0 || text_[begin - 1] == '\n');
  }

  std::string_view text_;
  std::vector<Break> breaks_;
  size_t protected_until_ = 0;
};

}  // namespace

std::vector<Break> find_breaks(std::string_view text) { return BreakFinder(text).find(); }

}  // namespace shoal::text
