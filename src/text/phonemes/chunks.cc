#include "text/phonemes/chunks.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "text/characters.h"

namespace shoal::phonemes {
namespace {

constexpr int kFewestFirstWords = 4;  // a shorter first clause sounds thin and is joined to the next
constexpr int kFewestRestWords = 4;   // a shorter rest does not become its own chunk

int length_of(const Token& token) { return count_code_points(token.phonemes) + (token.space_after ? 1 : 0); }

int length_of(const std::vector<Token>& tokens, size_t begin, size_t end) {
  int sum = 0;
  for (size_t i = begin; i < end; ++i) sum += length_of(tokens[i]);
  return sum;
}

bool is_word(const Token& token) { return !token.phonemes.empty() && !is_mark(token.phonemes); }

// After tokens[i] and a closing bracket or quote.
size_t behind_closers(const std::vector<Token>& tokens, size_t i) {
  size_t end = i + 1;
  while (end < tokens.size() && (tokens[end].phonemes == ")" || tokens[end].phonemes == "”")) ++end;
  return end;
}

// How many of `tokens`, which fill a chunk, to put into it; `next_length` more would follow, and the rest
// must fit in `next_limit`.
size_t best_cut(const std::vector<Token>& tokens, int next_length, int next_limit) {
  const int all = length_of(tokens, 0, tokens.size());
  for (const MarkKind kind : {MarkKind::sentence, MarkKind::colon, MarkKind::dash}) {
    size_t i = tokens.size();
    while (i > 0 && mark_kind(tokens[i - 1].phonemes) != kind) --i;
    if (i == 0) continue;
    const size_t cut = behind_closers(tokens, i - 1);
    if (all - length_of(tokens, 0, cut) + next_length <= next_limit) return cut;
  }
  for (size_t i = tokens.size(); i > 0; --i) {
    if (tokens[i - 1].space_after) return i;
  }
  return tokens.size();
}

// A token that is longer than a chunk, in parts.
std::vector<Token> split_token(const Token& token, int limit) {
  std::vector<Token> parts;
  const std::u32string sounds = to_code_points(token.phonemes);
  for (size_t begin = 0; begin < sounds.size();) {
    size_t end = std::min(sounds.size(), begin + static_cast<size_t>(limit) - 1);
    if (end < sounds.size()) {
      const size_t space = sounds.rfind(U' ', end);
      if (space != std::u32string::npos && space > begin) end = space;
      // Not between a sound and its length mark or accent; but a heap of accents is cut anywhere.
      for (int i = 0; i < 4 && end > begin + 1 && continues_symbol(sounds[end]); ++i) --end;
    }
    const bool at_space = end < sounds.size() && sounds[end] == U' ';
    parts.push_back({parts.empty() ? token.text : std::string(),
                     to_utf8(std::u32string_view(sounds).substr(begin, end - begin)), at_space});
    begin = end + (at_space ? 1 : 0);
  }
  if (!parts.empty()) parts.back().space_after = token.space_after;
  return parts;
}

}  // namespace

Chunker::Chunker(ChunkRules rules) : rules_(rules) {
  const auto check = [](const char* name, int value, int least, int most) {
    if (value < least || value > most)
      fail(ErrorCode::invalid_argument, name, ": expected ", least, " to ", most, ", got ", value);
  };
  check("max_phonemes", rules_.max_phonemes, 16, 510);
  check("first_words", rules_.first_words, 0, 100);
  check("second_phonemes", rules_.second_phonemes, 16, 510);
}

int Chunker::limit() const {
  return rules_.first_words > 0 && made_ < 2 ? std::min(rules_.second_phonemes, rules_.max_phonemes)
                                             : rules_.max_phonemes;
}

void Chunker::add(std::vector<Token> tokens, std::vector<Chunk>& chunks) {
  tidy_spaces(tokens);
  if (std::none_of(tokens.begin(), tokens.end(), is_word)) return;
  Chunk chunk{std::move(tokens), {}, 0};
  chunk.phonemes = phonemes_of(chunk.tokens);
  chunks.push_back(std::move(chunk));
  ++made_;
}

// The first clause, or about first_words words.
bool Chunker::cut_first(const std::vector<Token>& tokens, std::vector<Chunk>& chunks, size_t& done) {
  const auto words = std::count_if(tokens.begin(), tokens.end(), is_word);
  if (words <= rules_.first_words + kFewestRestWords) return false;
  int heard = 0;
  size_t short_clause = 0;  // ends here, if the next one is too long to be joined to it
  size_t cut = 0;
  for (size_t i = 0; i < tokens.size() && cut == 0 && heard <= rules_.first_words; ++i) {
    heard += is_word(tokens[i]) ? 1 : 0;
    if (mark_kind(tokens[i].phonemes) == MarkKind::none || heard == 0 || heard > rules_.first_words) continue;
    const size_t end = behind_closers(tokens, i);
    if (!tokens[end - 1].space_after) continue;  // "first—second"
    if (heard >= kFewestFirstWords) cut = end;
    if (heard < kFewestFirstWords && heard > 1) short_clause = end;
  }
  if (cut == 0) cut = short_clause;
  heard = 0;
  for (size_t i = 0; cut == 0 && i < tokens.size(); ++i) {
    heard += is_word(tokens[i]) ? 1 : 0;
    if (heard >= rules_.first_words && tokens[i].space_after) cut = i + 1;
  }
  if (cut == 0 || length_of(tokens, 0, cut) > limit()) return false;
  add(std::vector<Token>(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(cut)), chunks);
  done = cut;
  return true;
}

std::vector<Chunk> Chunker::cut(std::vector<Token> tokens) {
  tidy_spaces(tokens);
  std::vector<Chunk> chunks;
  size_t at = 0;
  if (rules_.first_words > 0 && made_ == 0) cut_first(tokens, chunks, at);

  std::vector<Token> open;  // of the chunk that is being filled
  int length = 0;
  const auto take = [&](const Token& token) {
    const int bare = count_code_points(token.phonemes);
    while (!open.empty() && length + bare > limit()) {
      const size_t cut = best_cut(open, bare, limit());
      const auto middle = open.begin() + static_cast<std::ptrdiff_t>(cut);
      std::vector<Token> rest(std::make_move_iterator(middle), std::make_move_iterator(open.end()));
      open.erase(middle, open.end());
      add(std::move(open), chunks);
      open = std::move(rest);
      length = length_of(open, 0, open.size());
    }
    length += length_of(token);
    open.push_back(token);
  };
  for (; at < tokens.size(); ++at) {
    if (count_code_points(tokens[at].phonemes) <= limit()) {
      take(tokens[at]);
    } else {
      for (const Token& part : split_token(tokens[at], limit())) take(part);
    }
  }
  add(std::move(open), chunks);
  return chunks;
}

std::vector<Chunk> Chunker::cut(std::vector<Token> tokens, double pause_after_s) {
  std::vector<Chunk> chunks = cut(std::move(tokens));
  if (pause_after_s <= 0) return chunks;
  if (chunks.empty()) chunks.emplace_back();
  chunks.back().pause_after_s += pause_after_s;
  return chunks;
}

std::vector<Token> split_phonemes(std::string_view phonemes) {
  text::require_utf8(phonemes);
  std::vector<Token> tokens;
  bool joins = false;  // the last token is an unfinished word
  for (const char32_t c : to_code_points(phonemes)) {
    if (text::is_white_space(c)) {
      if (!tokens.empty()) tokens.back().space_after = true;
      joins = false;
      continue;
    }
    const std::string symbol = to_utf8({&c, 1});
    const bool mark = is_mark(symbol);
    if (!joins || mark) tokens.emplace_back();
    tokens.back().phonemes += symbol;
    joins = !mark;
  }
  for (Token& token : tokens) token.text = token.phonemes;
  if (!tokens.empty()) tokens.back().space_after = false;
  return tokens;
}

void tidy_spaces(std::vector<Token>& tokens) {
  Token* heard = nullptr;  // the last token that is
  for (Token& token : tokens) {
    if (!token.phonemes.empty()) {
      heard = &token;
    } else if (token.space_after) {
      token.space_after = false;
      if (heard) heard->space_after = true;
    }
  }
  if (heard) heard->space_after = false;
}

}  // namespace shoal::phonemes
