#include <algorithm>
#include <unordered_map>

#include "text/phonemes/pronounce.h"
#include "text/phonemes/stress.h"
#include "text/phonemes/word_alignment.h"

namespace shoal::phonemes {
namespace {

// Longer clauses are cut between words: aligning is quadratic, and espeak-ng cuts them anyway.
constexpr size_t kMaxClauseWords = 48;
constexpr size_t kMaxClauseBytes = 1024;
constexpr std::ptrdiff_t kMaxClauseDots = 40;  // espeak-ng 1.51 dies of 85 letters with dots in one clause

struct Clause {
  size_t begin = 0, end = 0;  // of the pieces
  std::vector<std::string> words;
};

// It spells "U.S.", but says the dots of "Ph.D.".
std::string clause_for_espeak(const std::string& word) {
  bool has_pair = false;
  for (size_t i = 1; i < word.size(); ++i) has_pair |= word[i] != '.' && word[i - 1] != '.';
  std::string out = word;
  if (has_pair) std::erase(out, '.');
  return out;
}

std::vector<Clause> find_clauses(const std::vector<Piece>& pieces) {
  std::vector<Clause> clauses;
  size_t bytes = 0;
  std::ptrdiff_t dots = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].phonemes) continue;
    const std::ptrdiff_t more_dots = std::count(pieces[i].text.begin(), pieces[i].text.end(), '.');
    const bool goes_on =
        !clauses.empty() && clauses.back().end == i && clauses.back().words.size() < kMaxClauseWords &&
        bytes + pieces[i].text.size() < kMaxClauseBytes && dots + more_dots <= kMaxClauseDots;
    if (!goes_on) {
      clauses.push_back({i, i, {}});
      bytes = 0;
      dots = 0;
    }
    clauses.back().end = i + 1;
    clauses.back().words.push_back(clause_for_espeak(pieces[i].text));
    bytes += pieces[i].text.size() + 1;
    dots += more_dots;
  }
  return clauses;
}

// Every word once, by itself, to find it again in its clause. A clause of one word needs no finding.
std::unordered_map<std::string, std::string> pronounce_alone(const std::vector<Clause>& clauses,
                                                             Language language, EspeakPool& pool) {
  std::vector<std::string> words;
  for (const Clause& clause : clauses) {
    if (clause.words.size() > 1) words.insert(words.end(), clause.words.begin(), clause.words.end());
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::vector<std::string> spoken = pool.phonemes(language, words);
  std::unordered_map<std::string, std::string> alone;
  for (size_t i = 0; i < words.size(); ++i) alone.emplace(std::move(words[i]), std::move(spoken[i]));
  return alone;
}

std::vector<Token> align(const Clause& clause, const std::string& spoken,
                         const std::unordered_map<std::string, std::string>& alone) {
  if (clause.words.size() == 1) return {{clause.words[0], spoken, false}};
  std::vector<std::string> parts;
  parts.reserve(clause.words.size());
  for (const std::string& word : clause.words) parts.push_back(alone.at(word));
  return align_words(clause.words, spoken, parts);
}

std::string join_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

}  // namespace

std::vector<Token> pronounce_clauses(const std::vector<Piece>& pieces, Language language, EspeakPool& pool) {
  const std::vector<Clause> clauses = find_clauses(pieces);
  std::vector<std::string> texts;
  texts.reserve(clauses.size());
  for (const Clause& clause : clauses) texts.push_back(join_words(clause.words));
  const std::vector<std::string> spoken = pool.phonemes(language, texts);
  const std::unordered_map<std::string, std::string> alone = pronounce_alone(clauses, language, pool);

  std::vector<Token> tokens;
  tokens.reserve(pieces.size());
  size_t at = 0;
  const auto keep_until = [&](size_t end) {
    for (; at < end; ++at) tokens.push_back({pieces[at].text, *pieces[at].phonemes, pieces[at].space_after});
  };
  for (size_t i = 0; i < clauses.size(); ++i) {
    keep_until(clauses[i].begin);
    for (Token& token : align(clauses[i], spoken[i], alone)) {
      token.text = pieces[at].text;
      if (pieces[at].stress) token.phonemes = apply_stress(token.phonemes, *pieces[at].stress);
      tokens.push_back(std::move(token));
      ++at;
    }
    tokens.back().space_after = pieces[at - 1].space_after;
  }
  keep_until(pieces.size());
  return tokens;
}

}  // namespace shoal::phonemes
