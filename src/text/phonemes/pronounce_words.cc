#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "text/phonemes/pronounce.h"
#include "text/phonemes/stress.h"

namespace shoal::phonemes {
namespace {

// "well-known" -> well, known; "OpenAI" -> Open, AI; "HTTPServer" -> HTTP, Server.
std::vector<std::string> split_compound(std::string_view word) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < word.size(); ++i) {
    const bool hyphen = word[i] == '-';
    const bool rises = i > 0 && is_upper(word[i]) && is_lower(word[i - 1]);
    const bool falls = i > 0 && i + 1 < word.size() && is_upper(word[i]) && is_upper(word[i - 1]) &&
                       is_lower(word[i + 1]) && word.substr(i + 1) != "s";
    if ((hyphen || rises || falls) && !parts.back().empty()) parts.emplace_back();
    if (!hyphen) parts.back() += word[i];
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

std::string for_espeak(const std::string& word) {
  return is_all_capitals(word) ? to_lower_ascii(word) : word;
}

class WordReader {
 public:
  WordReader(const std::vector<Piece>& pieces, const EnglishLexicon& lexicon, Language language,
             EspeakPool& pool)
      : pieces_(pieces), lexicon_(lexicon), language_(language), pool_(pool) {}

  std::vector<Token> read() {
    ask_espeak();
    std::vector<Token> tokens(pieces_.size());
    for (size_t i = pieces_.size(); i-- > 0;) {  // right to left: a word's form depends on the sound after it
      const Piece& piece = pieces_[i];
      tokens[i] = {piece.text, piece.phonemes ? *piece.phonemes : pronounce(i), piece.space_after};
      look_back_at(i, tokens[i]);
    }
    return tokens;
  }

 private:
  // The context after the word, as far as it is known yet.
  WordContext context_of(size_t i) const {
    WordContext context;
    context.next_starts_with_vowel = next_starts_with_vowel_;
    context.next_word = next_word_;
    context.at_clause_start = i == 0 || (pieces_[i - 1].phonemes && is_mark(*pieces_[i - 1].phonemes));
    context.among_capitals = (i > 0 && is_all_capitals(pieces_[i - 1].text)) ||
                             (i + 1 < pieces_.size() && is_all_capitals(pieces_[i + 1].text));
    context.stress = pieces_[i].stress;
    return context;
  }

  // All that the lexicon leaves open, in one request.
  void ask_espeak() {
    std::vector<std::string> unknown;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].phonemes) continue;
      const WordContext context = context_of(i);
      if (lexicon_.pronounce(pieces_[i].text, context)) continue;
      for (const std::string& part : split_compound(pieces_[i].text)) {
        if (!lexicon_.pronounce(part, context)) unknown.push_back(for_espeak(part));
      }
    }
    std::sort(unknown.begin(), unknown.end());
    unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
    std::vector<std::string> spoken = pool_.phonemes(language_, unknown);
    for (size_t i = 0; i < unknown.size(); ++i)
      by_espeak_.emplace(std::move(unknown[i]), std::move(spoken[i]));
  }

  std::string pronounce(size_t i) const {
    const Piece& piece = pieces_[i];
    const WordContext context = context_of(i);
    if (auto known = lexicon_.pronounce(piece.text, context)) return *std::move(known);
    std::vector<std::string> parts;
    for (const std::string& part : split_compound(piece.text)) {
      if (auto known = lexicon_.pronounce(part, context)) {
        parts.push_back(*std::move(known));
        continue;
      }
      const auto spoken = by_espeak_.find(for_espeak(part));
      CHECK(spoken != by_espeak_.end(), "a word that was not asked for");
      parts.push_back(piece.stress ? apply_stress(spoken->second, *piece.stress) : spoken->second);
    }
    return glue_compound(std::move(parts));
  }

  void look_back_at(size_t i, const Token& token) {
    if (mark_kind(token.phonemes) != MarkKind::none) {
      next_starts_with_vowel_.reset();
      next_word_.clear();
    } else if (!token.phonemes.empty() && !is_mark(token.phonemes)) {
      next_starts_with_vowel_ = starts_with_vowel(token.phonemes);
      next_word_ = to_lower_ascii(pieces_[i].text);
    }
  }

  const std::vector<Piece>& pieces_;
  const EnglishLexicon& lexicon_;
  Language language_;
  EspeakPool& pool_;
  std::unordered_map<std::string, std::string> by_espeak_;
  std::optional<bool> next_starts_with_vowel_;
  std::string next_word_;
};

}  // namespace

std::vector<Token> pronounce_words(const std::vector<Piece>& pieces, const EnglishLexicon& lexicon,
                                   Language language, EspeakPool& pool) {
  return WordReader(pieces, lexicon, language, pool).read();
}

}  // namespace shoal::phonemes
