#include "text/phonemes/english_lexicon.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "text/phonemes/code_points.h"
#include "text/phonemes/stress.h"

namespace shoal::phonemes {
namespace {

constexpr size_t kLongestInitialism = 5;  // an unknown longer word in capitals is a word that is shouted

// Written in capitals these are more often stressed words than initialisms.
constexpr std::string_view kStressedWords[] = {"ACT", "ADD", "AH", "AID", "AM",  "AS",  "BE",  "CAP", "DIP",
                                               "HE",  "HI",  "HM", "HMM", "IN",  "IS",  "LED", "MA",  "ME",
                                               "MM",  "OH",  "OR", "RE",  "SAT", "SOB", "TA",  "WHO"};

char lower(char c) { return static_cast<char>(is_upper(c) ? c - 'A' + 'a' : c); }

bool is_one_of(char32_t c, std::u32string_view set) { return set.find(c) != std::u32string_view::npos; }
char32_t last_of(std::string_view phonemes) {
  return phonemes.empty()
             ? U' '
             : text::code_point_at(phonemes, text::previous_character(phonemes, phonemes.size()));
}

std::string capitalised(std::string_view word) {
  std::string out(word);
  if (is_lower(out[0])) out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

// "U.S.A." -> "USA", "Ph.D." -> "PhD"; empty when there is no dot.
std::string letters_of_initialism(std::string_view word) {
  std::string letters(word);
  return std::erase(letters, '.') > 0 && letters.size() >= 2 ? letters : std::string();
}

// The stress that capitalisation implies: none for lower case, a little for a capital, much for all capitals.
std::optional<double> stress_of_case(std::string_view word) {
  if (is_all_capitals(word)) return 2;
  if (std::none_of(word.begin(), word.end(), is_upper)) return std::nullopt;
  return 0.5;
}

// "stopping" -> "stop": whether the stem's last letter was doubled.
bool is_doubled(std::string_view stem) {
  return stem.size() >= 3 && stem[stem.size() - 1] == stem[stem.size() - 2] &&
         std::string_view("bcdgklmnprstvz").find(stem.back()) != std::string_view::npos;
}

// An American t between these and an unstressed ending is a flap.
bool flaps(std::string_view stem, bool british) {
  if (british || last_of(stem) != U't') return false;
  return is_one_of(last_of(stem.substr(0, stem.size() - 1)), U"AIOWYiuæɑəɛɪɹʊʌ");
}

}  // namespace

bool is_all_capitals(std::string_view word) {
  return std::none_of(word.begin(), word.end(), is_lower) &&
         std::count_if(word.begin(), word.end(), is_upper) >= 2;
}

std::string to_lower_ascii(std::string_view word) {
  std::string out(word);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

EnglishLexicon::EnglishLexicon(std::vector<Dictionary> dictionaries, bool british)
    : dictionaries_(std::move(dictionaries)), british_(british) {}

EnglishLexicon EnglishLexicon::read(const std::string& folder, bool british) {
  if (!is_directory(folder)) fail(ErrorCode::not_found, "dictionaries: ", folder, " is not a folder");
  std::vector<Dictionary> dictionaries;
  for (const char* name : {"gold", "silver"}) {
    const std::string path = concat(folder, "/", british ? "gb_" : "us_", name, ".json");
    if (is_regular_file(path)) dictionaries.push_back(Dictionary::read(path));
  }
  return {std::move(dictionaries), british};
}

std::optional<Dictionary::Entry> EnglishLexicon::find(std::string_view word) const {
  if (word.empty()) return std::nullopt;
  const std::string other =
      is_upper(word[0]) ? to_lower_ascii(word.substr(0, 1)).append(word.substr(1)) : capitalised(word);
  const bool has_other = std::none_of(word.begin() + 1, word.end(), is_upper) && other != word;
  for (const Dictionary& dictionary : dictionaries_) {
    if (auto entry = dictionary.find(word)) return entry;
    if (!has_other) continue;
    if (auto entry = dictionary.find(other)) return entry;
  }
  return std::nullopt;
}

std::optional<std::string> EnglishLexicon::by_neighbours(std::string_view word,
                                                         const WordContext& context) const {
  const bool ends = !context.next_starts_with_vowel.has_value();
  const bool before_vowel = context.next_starts_with_vowel.value_or(false);
  const std::string small = to_lower_ascii(word);
  if (word == "I") return "ˌI";
  if (context.stress.value_or(0) > 0) return std::nullopt;  // explicit stress asks for the full form
  if (small == "a") {
    const bool is_article = !ends && (word == "a" || context.at_clause_start || context.among_capitals);
    return is_article ? "ɐ" : "ˈA";
  }
  if (is_all_capitals(word) && !context.among_capitals) return std::nullopt;
  if (small == "an") return "ɐn";
  if (small == "am" && !ends) return "ɐm";
  if (small == "the") return before_vowel ? "ði" : "ðə";
  if (small == "to" && !ends) return before_vowel ? "tʊ" : "tə";
  if (small == "in") return ends ? "ˈɪn" : "ɪn";
  if (small == "used" && context.next_word == "to") return "jˈust";
  if (small == "vs") return by_dictionary("versus", context);
  return std::nullopt;
}

std::optional<std::string> EnglishLexicon::by_dictionary(std::string_view word,
                                                         const WordContext& context) const {
  std::optional<Dictionary::Entry> entry = find(word);
  if (!entry && is_all_capitals(word)) entry = find(to_lower_ascii(word));
  if (!entry) return std::nullopt;
  const bool is_initialism =
      entry->is_spelled_as_noun && entry->word == word && !context.among_capitals &&
      std::find(std::begin(kStressedWords), std::end(kStressedWords), word) == std::end(kStressedWords);
  if (is_initialism) return spell_letters(word, british_);
  const bool ends = !context.next_starts_with_vowel.has_value();
  return std::string(ends && !entry->at_clause_end.empty() ? entry->at_clause_end : entry->phonemes);
}

// Of a word without its ending: in the dictionaries, or an initialism ("GPUs").
std::optional<std::string> EnglishLexicon::stem(std::string_view word) const {
  if (const auto entry = find(word)) return std::string(entry->phonemes);
  if (is_all_capitals(word) && word.size() <= kLongestInitialism) return spell_letters(word, british_);
  return std::nullopt;
}

std::optional<std::string> EnglishLexicon::with_s(std::string_view word) const {
  if (word.size() < 3 || word.back() != 's') return std::nullopt;
  std::optional<std::string> base;
  if (word.ends_with("'s")) {
    base = stem(word.substr(0, word.size() - 2));
  } else if (!word.ends_with("ss")) {
    base = stem(word.substr(0, word.size() - 1));
    if (!base && word.size() > 4 && word.ends_with("ies"))
      base = stem(std::string(word.substr(0, word.size() - 3)) + "y");
    if (!base && word.size() > 4 && word.ends_with("es")) base = stem(word.substr(0, word.size() - 2));
  }
  if (!base) return std::nullopt;
  const char32_t last = last_of(*base);
  if (is_one_of(last, U"ptkfθ")) return *base + "s";
  if (is_one_of(last, U"szʃʒʧʤ")) return *base + (british_ ? "ɪz" : "ᵻz");
  return *base + "z";
}

std::optional<std::string> EnglishLexicon::with_ed(std::string_view word) const {
  if (word.size() < 5 || !word.ends_with("ed") || word.ends_with("eed")) return std::nullopt;
  const std::string_view bare = word.substr(0, word.size() - 2);
  std::optional<std::string> base = stem(word.substr(0, word.size() - 1));
  if (!base) base = stem(bare);
  if (!base && is_doubled(bare)) base = stem(bare.substr(0, bare.size() - 1));
  if (!base) return std::nullopt;
  const char32_t last = last_of(*base);
  if (is_one_of(last, U"pkfθʃsʧ")) return *base + "t";
  const std::string ending = british_ ? "ɪd" : "ᵻd";
  if (flaps(*base, british_)) return base->substr(0, base->size() - 1) + "ɾ" + ending;
  return *base + (is_one_of(last, U"td") ? ending : "d");
}

std::optional<std::string> EnglishLexicon::with_ing(std::string_view word) const {
  if (word.size() < 6 || !word.ends_with("ing")) return std::nullopt;
  const std::string_view bare = word.substr(0, word.size() - 3);
  std::optional<std::string> base = stem(bare);
  if (!base) base = stem(std::string(bare) + "e");
  if (!base && is_doubled(bare)) base = stem(bare.substr(0, bare.size() - 1));
  if (!base) return std::nullopt;
  // A British r that is silent at the end is heard again here; espeak-ng knows which words have one.
  if (british_ && is_one_of(last_of(*base), U"əː")) return std::nullopt;
  if (flaps(*base, british_)) return base->substr(0, base->size() - 1) + "ɾɪŋ";
  return *base + "ɪŋ";
}

std::optional<std::string> EnglishLexicon::pronounce(std::string_view word,
                                                     const WordContext& context) const {
  const auto stressed = [&](std::string phonemes, std::optional<double> stress) {
    return stress ? apply_stress(phonemes, *stress) : phonemes;
  };
  if (auto special = by_neighbours(word, context)) return stressed(*std::move(special), context.stress);
  const std::optional<double> stress = context.stress ? context.stress : stress_of_case(word);
  if (auto known = by_dictionary(word, context)) return stressed(*std::move(known), stress);
  if (const std::string letters = letters_of_initialism(word); !letters.empty())
    return stressed(spell_letters(letters, british_), context.stress);
  for (const auto rule : {&EnglishLexicon::with_s, &EnglishLexicon::with_ed, &EnglishLexicon::with_ing}) {
    if (auto derived = (this->*rule)(word)) return stressed(*std::move(derived), stress);
  }
  const std::string small = to_lower_ascii(word);
  for (const auto rule : {&EnglishLexicon::with_s, &EnglishLexicon::with_ed, &EnglishLexicon::with_ing}) {
    if (auto derived = (this->*rule)(small)) return stressed(*std::move(derived), stress);
  }
  const bool letters_only = std::all_of(word.begin(), word.end(), is_upper);
  if (letters_only && is_all_capitals(word) && word.size() <= kLongestInitialism && !context.among_capitals)
    return stressed(spell_letters(word, british_), context.stress);
  return std::nullopt;
}

}  // namespace shoal::phonemes
