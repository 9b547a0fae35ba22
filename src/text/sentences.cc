#include "text/sentences.h"

#include <algorithm>

#include "base/error.h"
#include "text/characters.h"
#include "text/sentence_breaks.h"
#include "text/utf8.h"

namespace shoal::text {
namespace {

constexpr int kSmallestLimit = 16;

size_t skip_white_space(std::string_view text, size_t at) {
  while (at < text.size() && is_white_space(code_point_at(text, at))) at += character_bytes(text[at]);
  return at;
}

// The last place within `limit` bytes where a character ends and no accent, joiner or variation selector
// would lose the character it belongs to.
size_t cut_between_characters(std::string_view text, size_t start, size_t limit) {
  constexpr char32_t kJoiner = 0x200D;
  size_t cut = start + limit;
  while ((static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) --cut;
  const size_t plain = cut;
  for (int tries = 0; tries < 32 && cut > start; ++tries) {
    const char32_t next = code_point_at(text, cut), last = code_point_at(text, previous_character(text, cut));
    if (!is_combining_mark(next) && next != kJoiner && last != kJoiner) return cut;
    cut = previous_character(text, cut);
  }
  return plain;
}

// Chooses the cuts from left to right.
class Packer {
 public:
  Packer(std::string_view text, size_t limit) : text_(text), limit_(limit), breaks_(find_breaks(text)) {}

  std::vector<std::string> pack() {
    std::vector<std::string> utterances;
    for (size_t start = skip_white_space(text_, 0); start < text_.size();) {
      const size_t end = end_of_utterance(start);
      utterances.emplace_back(strip_white_space(text_.substr(start, end - start)));
      start = skip_white_space(text_, end);
    }
    return utterances;
  }

 private:
  size_t end_of_utterance(size_t start) {
    if (text_.size() - start <= limit_) return text_.size();
    while (first_ < breaks_.size() && breaks_[first_].position <= start) ++first_;
    size_t last[3] = {0, 0, 0};  // by level; 0: none
    size_t i = first_;
    for (; i < breaks_.size() && breaks_[i].position - start <= limit_; ++i)
      last[static_cast<size_t>(breaks_[i].level)] = breaks_[i].position;
    const auto [space, clause, sentence] = last;
    if (sentence > 0) return sentence;
    // A clause end close to the start ("Well, ...") would leave a fragment.
    if (clause > start + limit_ / 4) return clause;
    if (space > 0 || clause > 0) return balanced(start, i, std::max(space, clause));
    return cut_between_characters(text_, start, limit_);
  }

  // `cut`, unless it would leave only a word or two of the sentence: then a space nearer to its middle.
  size_t balanced(size_t start, size_t beyond, size_t cut) const {
    size_t end = text_.size();
    for (size_t i = beyond; i < breaks_.size() && breaks_[i].position - cut < limit_ / 4; ++i) {
      if (breaks_[i].level != BreakLevel::sentence) continue;
      end = breaks_[i].position;
      break;
    }
    if (end - cut >= limit_ / 4) return cut;
    const size_t middle = start + (end - start) / 2;
    for (size_t i = first_; i < beyond; ++i) {
      if (breaks_[i].position >= middle) return breaks_[i].position;
    }
    return cut;
  }

  std::string_view text_;
  size_t limit_;
  std::vector<Break> breaks_;
  size_t first_ = 0;  // the first break after the current start
};

}  // namespace

std::vector<std::string> split_utterances(std::string_view text, int max_bytes) {
  if (max_bytes < kSmallestLimit)
    fail(ErrorCode::invalid_argument, "max_bytes: expected at least ", kSmallestLimit, ", got ", max_bytes);
  require_utf8(text);
  return Packer(text, static_cast<size_t>(max_bytes)).pack();
}

bool is_speakable(std::string_view text) {
  for (size_t at = 0; at < text.size(); at += character_bytes(text[at])) {
    if (is_letter_or_digit(code_point_at(text, at))) return true;
  }
  return false;
}

}  // namespace shoal::text
