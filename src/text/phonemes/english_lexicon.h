// English words by dictionary and rule.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/phonemes/dictionary.h"

namespace shoal::phonemes {

// What decides between the forms of a word.
struct WordContext {
  std::optional<bool> next_starts_with_vowel;  // empty: a clause ends here
  std::string_view next_word;                  // in lower case; empty at a clause end
  bool at_clause_start = false;
  bool among_capitals = false;   // a neighbour is written in capitals too: shouting, not an initialism
  std::optional<double> stress;  // given by the writer
};

class EnglishLexicon {
 public:
  EnglishLexicon() = default;  // without any word
  // Reads us_gold.json and us_silver.json (gb_... for British) of a folder; files that are not there are left
  // out. Throws Error: not_found (no such folder), and as Dictionary::read does.
  static EnglishLexicon read(const std::string& folder, bool british);
  // In order of precedence.
  EnglishLexicon(std::vector<Dictionary> dictionaries, bool british);

  bool knows_words() const { return !dictionaries_.empty(); }

  // Phonemes of misaki's set, flaps as ɾ, or nothing for a word that espeak-ng must pronounce. In this order:
  // articles and other words whose form depends on their neighbours; the dictionaries, also with the first
  // letter in the other case; initialisms; words in capitals as lower-case ones; -s, -ed, -ing on known
  // stems; short unknown words in capitals letter by letter. Differs from misaki where that uses a tagger: a,
  // the, to, in, am, used depend on their next word; of forms per part of speech, DEFAULT is used.
  std::optional<std::string> pronounce(std::string_view word, const WordContext& context) const;

 private:
  std::optional<Dictionary::Entry> find(std::string_view word) const;
  std::optional<std::string> by_neighbours(std::string_view word, const WordContext& context) const;
  std::optional<std::string> by_dictionary(std::string_view word, const WordContext& context) const;
  std::optional<std::string> stem(std::string_view word) const;
  std::optional<std::string> with_s(std::string_view word) const;
  std::optional<std::string> with_ed(std::string_view word) const;
  std::optional<std::string> with_ing(std::string_view word) const;

  std::vector<Dictionary> dictionaries_;
  bool british_ = false;
};

inline bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }  // ASCII
inline bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_all_capitals(std::string_view word);  // at least two ASCII letters, none of them small
std::string to_lower_ascii(std::string_view word);

}  // namespace shoal::phonemes
