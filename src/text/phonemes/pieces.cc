#include "text/phonemes/pieces.h"

#include <algorithm>

#include "text/characters.h"

namespace shoal::phonemes {
namespace {

constexpr std::u32string_view kEspeakMarks = U";:,.!?¡¿—…\"«»“”";
constexpr std::u32string_view kEnglishMarks = U";:,.!?…";
constexpr std::u32string_view kOpenBrackets = U"([{";
constexpr std::u32string_view kCloseBrackets = U")]}";
constexpr std::u32string_view kOpenQuotes = U"“„«‟";
constexpr std::u32string_view kCloseQuotes = U"”»";
constexpr std::u32string_view kDashes = U"-–—‒―‐‑−";

struct Sign {
  char32_t sign;
  std::string_view word;
};
constexpr Sign kSigns[] = {{U'%', "percent"}, {U'&', "and"},    {U'+', "plus"},
                           {U'@', "at"},      {U'=', "equals"}, {U'°', "degrees"}};

bool contains(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(to_code_points(text)) {}

  std::vector<Piece> english() {
    while (at_ < text_.size()) {
      const char32_t c = text_[at_];
      if (text::is_white_space(c)) {
        space();
      } else if (is_word(at_) || starts_clipped_word()) {
        word(english_word_end());
      } else {
        english_mark(c);
      }
    }
    return std::move(pieces_);
  }

  std::vector<Piece> at_marks() {
    while (at_ < text_.size()) {
      const char32_t c = text_[at_];
      if (text::is_white_space(c)) {
        space();
      } else if (contains(kEspeakMarks, c)) {
        mark(at_ + 1, to_utf8({&c, 1}));
      } else {
        size_t end = at_;
        while (end < text_.size() && !text::is_white_space(text_[end]) && !contains(kEspeakMarks, text_[end]))
          ++end;
        word(end);
      }
    }
    return std::move(pieces_);
  }

 private:
  char32_t peek(size_t at) const { return at < text_.size() ? text_[at] : U'\n'; }
  bool is_word(size_t at) const {
    return at < text_.size() && (text::is_letter_or_digit(text_[at]) || text::is_combining_mark(text_[at]));
  }

  void space() {
    if (!pieces_.empty()) pieces_.back().space_after = true;
    ++at_;
  }

  void add(std::u32string_view text, std::optional<std::string> phonemes) {
    pieces_.push_back({to_utf8(text), std::move(phonemes), {}, false});
  }

  void word(size_t end) {
    constexpr size_t kMostCodePoints = kMaxWordBytes / 4;
    while (at_ < end) {
      const size_t count = std::min(end - at_, kMostCodePoints);
      add(std::u32string_view(text_).substr(at_, count), std::nullopt);
      at_ += count;
    }
  }

  void mark(size_t end, std::string phonemes) {
    add(std::u32string_view(text_).substr(at_, end - at_), std::move(phonemes));
    at_ = end;
  }

  // 'em, 'tis: an apostrophe before a word, without a letter before it.
  bool starts_clipped_word() const {
    if (text_[at_] != U'\'' || !is_word(at_ + 1) || (at_ > 0 && is_word(at_ - 1))) return false;
    std::u32string lower;
    for (size_t i = at_ + 1; is_word(i) && lower.size() < 8; ++i) {
      const char32_t c = text_[i];
      lower += c >= U'A' && c <= U'Z' ? c - U'A' + U'a' : c;
    }
    static constexpr std::u32string_view kClipped[] = {U"em",   U"tis",   U"twas", U"cause", U"til",
                                                       U"bout", U"neath", U"n",    U"round"};
    return std::find(std::begin(kClipped), std::end(kClipped), lower) != std::end(kClipped);
  }

  // "U.S.A.", "Ph.D.", "a.m.": parts of one or two letters, each with its dot or, the last, without; two
  // letters only after a capital and next to a single letter. Returns the position after the last letter or
  // dot, or at_ when there is none.
  size_t initialism_end() const {
    size_t end = at_;
    size_t parts = 0;
    bool has_single = false;
    for (size_t at = at_; text::is_letter(peek(at));) {
      size_t letters = at;
      while (letters < at + 3 && text::is_letter(peek(letters))) ++letters;
      const size_t count = letters - at;
      if (count > 2 || (count == 2 && !text::is_upper(peek(at))) || is_word(letters)) break;
      ++parts;
      has_single |= count == 1;
      end = letters;
      if (peek(letters) != U'.') break;
      end = at = letters + 1;
    }
    if (parts < 2 || !has_single) return at_;
    // The last dot also ends the sentence if nothing follows.
    return text_[end - 1] == U'.' && is_last(end) ? end - 1 : end;
  }

  bool is_last(size_t at) const {
    while (at < text_.size() && (text::is_white_space(text_[at]) || contains(kCloseBrackets, text_[at]) ||
                                 contains(kCloseQuotes, text_[at]) || text_[at] == U'"'))
      ++at;
    return at == text_.size();
  }

  size_t english_word_end() const {
    if (const size_t end = initialism_end(); end > at_) return end;
    size_t end = at_ + (text_[at_] == U'\'' ? 1 : 0);
    while (end < text_.size()) {
      const char32_t c = text_[end];
      const bool joins = (c == U'\'' || c == U'-' || c == U'\u2010' || c == U'\u2011') && is_word(end + 1);
      if (!is_word(end) && !joins) break;
      ++end;
    }
    const bool is_and =
        end == at_ + 2 && text_[at_] == U'\'' && (text_[at_ + 1] | 0x20) == U'n' && peek(end) == U'\'';
    return end + (is_and ? 1 : 0);
  }

  void english_mark(char32_t c) {
    if (contains(kEnglishMarks, c)) {
      size_t end = at_ + 1;
      while (peek(end) == c) ++end;
      const size_t kept = std::min<size_t>(end - at_, 3);  // "!!!!!!!!" is not louder
      const std::string phonemes = to_utf8(std::u32string(kept, c));
      return mark(end, phonemes);
    }
    if (contains(kOpenBrackets, c)) return mark(at_ + 1, "(");
    if (contains(kCloseBrackets, c)) return mark(at_ + 1, ")");
    if (contains(kOpenQuotes, c)) return mark(at_ + 1, "“");
    if (contains(kCloseQuotes, c)) return mark(at_ + 1, "”");
    if (c == U'"') return mark(at_ + 1, opens_quote() ? "“" : "”");
    if (contains(kDashes, c) && !pieces_.empty()) {  // at the start it marks a list item
      size_t end = at_ + 1;
      while (contains(kDashes, peek(end))) ++end;
      return mark(end, "—");
    }
    for (const Sign& sign : kSigns) {
      if (c == sign.sign) return sign_word(sign.word);
    }
    space();  // silent, but its neighbours stay separate
  }

  bool opens_quote() const {
    if (at_ == 0) return true;
    const char32_t before = text_[at_ - 1];
    return text::is_white_space(before) || contains(kOpenBrackets, before) || contains(kDashes, before);
  }

  void sign_word(std::string_view word) {
    space();
    pieces_.push_back({std::string(word), {}, {}, true});
  }

  std::u32string text_;
  size_t at_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<Piece> split_english(std::string_view text) { return Splitter(text).english(); }
std::vector<Piece> split_at_marks(std::string_view text) { return Splitter(text).at_marks(); }

}  // namespace shoal::phonemes
