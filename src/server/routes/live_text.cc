#include "server/routes/live_text.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "text/characters.h"
#include "text/sentences.h"
#include "text/utf8.h"

namespace shoal::server {
namespace {

using text::Break;
using text::BreakLevel;
using text::character_bytes;
using text::code_point_at;

// How far text after a break can still affect it: a bracket that opens before the break protects it if it
// closes within 48 bytes, a square one within 200, and 16 characters are searched for the beginning of the
// next word (text/sentence_breaks).
constexpr size_t kMarkerBytes = 48, kTagBytes = 200;
constexpr int kCharactersToNextWord = 16;
constexpr size_t kLookAhead = kTagBytes + kCharactersToNextWord;

// Shortest segments, the first, the second, ...: every segment costs a prompt, and speech of less than a
// sentence or two has no melody. A second of speech is some fifteen bytes.
constexpr std::array<size_t, 3> kShortest = {1, 40, 80};
constexpr size_t kFirstClause = 32;  // the first segment may end at a clause from here on

constexpr std::u32string_view kOpeners =
    U"\"'([{\u201C\u2018\u00AB\u00BF\u00A1\u300C\u300E\u3010\u300A\uFF08*_";

// Whether no text that follows can move the break or change its level.
bool next_word_is_known(std::string_view text, size_t at) {
  while (at < text.size() && text::is_white_space(code_point_at(text, at))) at += character_bytes(text[at]);
  if (at >= text.size()) return false;
  for (int looked = 0; looked < kCharactersToNextWord; ++looked) {
    if (at >= text.size()) return false;
    const char32_t c = code_point_at(text, at);
    if (!text::is_white_space(c) && kOpeners.find(c) == std::u32string_view::npos) return true;
    at += character_bytes(text[at]);
  }
  return true;
}

// Whether a bracket before `at` may still turn out to be a marker that reaches over it.
bool is_in_open_bracket(std::string_view text, size_t at) {
  for (size_t open = at - std::min(at, kTagBytes); open < at; ++open) {
    if (text[open] != '(' && text[open] != '[') continue;
    const size_t longest = text[open] == '[' ? kTagBytes : kMarkerBytes;
    if (text.size() >= open + longest) continue;  // it is settled
    if (text.find_first_of(")]\n", open + 1) == std::string_view::npos) return true;
  }
  return false;
}

bool is_settled(std::string_view text, size_t at) {
  return next_word_is_known(text, at) && !is_in_open_bracket(text, at);
}

}  // namespace

LiveText::LiveText(size_t longest_bytes) : longest_(longest_bytes) {
  CHECK(longest_ >= 50, "segments of ", longest_, " bytes");
}

// Everything that may be looked at for the next decision: always the same bytes when that decision falls.
std::string_view LiveText::window() const {
  std::string_view window = std::string_view(text_).substr(start_);
  size_t end = std::min(window.size(), longest_ + kLookAhead);
  while (end < window.size() && (static_cast<uint8_t>(window[end]) & 0xC0) == 0x80) --end;
  return window.substr(0, end);
}

bool LiveText::fits(const Break& end, std::string_view window) const {
  const size_t shortest = kShortest[std::min(released_, kShortest.size() - 1)];
  const bool sentence = end.level == BreakLevel::sentence && end.position >= shortest;
  const bool clause = released_ == 0 && end.level == BreakLevel::clause && end.position >= kFirstClause;
  return (sentence || clause) && end.position <= longest_ &&
         text::is_speakable(window.substr(0, end.position));
}

// End of the segment, as far as it is known; 0: not yet.
size_t LiveText::settled_end(std::string_view window) const {
  for (const Break& end : text::find_breaks(window)) {
    if (!is_settled(window, end.position)) break;
    if (fits(end, window)) return end.position;
  }
  return 0;
}

// Where a text that has to be cut is cut.
size_t LiveText::forced_end(std::string_view window) const {
  size_t last[3] = {0, 0, 0};  // by level; 0: none
  for (const Break& end : text::find_breaks(window)) {
    if (end.position <= longest_) last[static_cast<size_t>(end.level)] = end.position;
  }
  const auto [space, clause, sentence] = last;
  if (sentence > 0) return sentence;
  if (clause > longest_ / 4) return clause;
  if (std::max(space, clause) > 0) return std::max(space, clause);
  size_t end = longest_;
  while ((static_cast<uint8_t>(window[end]) & 0xC0) == 0x80) --end;
  return end;
}

void LiveText::release(size_t bytes) {
  ready_.push_back(text_.substr(start_, bytes));
  ready_bytes_ += bytes;
  start_ += bytes;
  ++released_;
}

void LiveText::drop_released() {
  text_.erase(0, start_);
  start_ = 0;
}

void LiveText::add(std::string_view piece) {
  text::require_utf8(piece);
  text_ += piece;
  while (true) {
    const std::string_view seen = window();
    size_t end = settled_end(seen);
    if (end == 0 && text_.size() - start_ >= longest_ + kLookAhead) end = forced_end(seen);
    if (end == 0) break;
    release(end);
  }
  drop_released();
}

void LiveText::flush() {
  while (text_.size() - start_ > longest_) release(forced_end(window()));
  if (text_.size() > start_) release(text_.size() - start_);
  drop_released();
}

std::optional<std::string> LiveText::next() {
  if (ready_.empty()) return std::nullopt;
  std::string segment = std::move(ready_.front());
  ready_.pop_front();
  ready_bytes_ -= segment.size();
  return segment;
}

}  // namespace shoal::server
