#include "text/phonemes/word_alignment.h"

#include <algorithm>

#include "base/error.h"

namespace shoal::phonemes {
namespace {

// A clause of 48 words has about 300 phonemes; more than this is not natural language.
constexpr size_t kMostCells = 1'000'000;

// Words, joined with a space between each two; and the positions of those spaces.
struct Joined {
  std::u32string text;
  std::vector<size_t> boundaries;
};

Joined join(std::span<const std::string> alone) {
  Joined joined;
  for (size_t i = 0; i < alone.size(); ++i) {
    if (i > 0) {
      joined.boundaries.push_back(joined.text.size());
      joined.text += U' ';
    }
    for (const char32_t c : to_code_points(alone[i])) {
      if (c != U' ') joined.text += c;  // the only spaces are boundaries
    }
  }
  return joined;
}

bool is_stress(char32_t c) { return c == U'ˈ' || c == U'ˌ'; }

// A space may vanish or appear, but never turns into a sound.
int change_cost(char32_t a, char32_t b) {
  if (a == b) return 0;
  if (a == U' ' || b == U' ') return 100;
  return is_stress(a) == is_stress(b) ? 3 : 6;
}
int drop_cost(char32_t c) { return c == U' ' || is_stress(c) ? 2 : 3; }

// For every position of `from` the aligned position of `to`, with the fewest edits; size from + 1.
std::vector<size_t> align(const std::u32string& from, const std::u32string& to) {
  const size_t columns = to.size() + 1;
  std::vector<int> cost((from.size() + 1) * columns, 0);
  const auto at = [&](size_t i, size_t j) -> int& { return cost[i * columns + j]; };
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 && j == 0) continue;
      int best = 1 << 30;
      if (i > 0 && j > 0) best = at(i - 1, j - 1) + change_cost(from[i - 1], to[j - 1]);
      if (i > 0) best = std::min(best, at(i - 1, j) + drop_cost(from[i - 1]));
      if (j > 0) best = std::min(best, at(i, j - 1) + drop_cost(to[j - 1]));
      at(i, j) = best;
    }
  }
  std::vector<size_t> places(from.size() + 1, 0);
  size_t i = from.size();
  size_t j = to.size();
  places[i] = j;
  while (i > 0 || j > 0) {
    if (i > 0 && j > 0 && at(i, j) == at(i - 1, j - 1) + change_cost(from[i - 1], to[j - 1])) {
      --i;
      --j;
    } else if (i > 0 && at(i, j) == at(i - 1, j) + drop_cost(from[i - 1])) {
      --i;
    } else {
      --j;
    }
    places[i] = j;
  }
  return places;
}

// For clauses too long to align: the groups of the clause one by one; the last word takes the rest.
std::vector<Token> deal_out(std::span<const std::string> words, std::string_view clause) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t end = i + 1 < words.size() ? std::min(clause.find(' '), clause.size()) : clause.size();
    const bool spaced = end < clause.size();
    tokens.push_back({words[i], std::string(clause.substr(0, end)), spaced});
    clause.remove_prefix(end + (spaced ? 1 : 0));
  }
  return tokens;
}

}  // namespace

std::vector<Token> align_words(std::span<const std::string> words, std::string_view clause,
                               std::span<const std::string> alone) {
  CHECK(words.size() == alone.size(), words.size(), " words, ", alone.size(), " pronounced");
  const std::u32string sounds = to_code_points(clause);
  const Joined joined = join(alone);
  if (sounds.size() * joined.text.size() > kMostCells) return deal_out(words, clause);
  const std::vector<size_t> places = align(joined.text, sounds);
  std::vector<Token> tokens;
  size_t begin = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    size_t end = i < joined.boundaries.size() ? std::max(begin, places[joined.boundaries[i]]) : sounds.size();
    while (end < sounds.size() && continues_symbol(sounds[end])) ++end;
    while (end > begin && sounds[end - 1] == U' ') --end;
    size_t next = end;
    while (next < sounds.size() && sounds[next] == U' ') ++next;
    tokens.push_back({words[i], to_utf8(std::u32string_view(sounds).substr(begin, end - begin)), next > end});
    begin = next;
  }
  return tokens;
}

}  // namespace shoal::phonemes
