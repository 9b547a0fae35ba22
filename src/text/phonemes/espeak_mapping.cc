#include "text/phonemes/espeak_mapping.h"

#include <span>

#include "text/phonemes/code_points.h"

namespace shoal::phonemes {
namespace {

struct Substitution {
  std::string_view from, to;
};

#define TIE "\u0361"
#define SYLLABIC "\u0329"
// Longest first, every occurrence, each applied to the result of the previous ones.
constexpr Substitution kEnglish[] = {
    {"ʔˌn" SYLLABIC, "ʔn"},
    {"ʔn" SYLLABIC, "ʔn"},
    {"a" TIE "ɪ", "I"},
    {"a" TIE "ʊ", "W"},
    {"d" TIE "ʒ", "ʤ"},
    {"e" TIE "ɪ", "A"},
    {"t" TIE "ʃ", "ʧ"},
    {"ɔ" TIE "ɪ", "Y"},
    {"ə" TIE "l", "ᵊl"},
    {"ʲo", "jo"},
    {"ʲə", "jə"},
    {"e", "A"},
    {"ʲ", ""},
    {"ɚ", "əɹ"},
    {"r", "ɹ"},
    {"x", "k"},
    {"ç", "k"},
    {"ɐ", "ə"},
    {"ɬ", "l"},
    {"\u0303", ""},
};
constexpr Substitution kAmerican[] = {
    {"o" TIE "ʊ", "O"}, {"ɜːɹ", "ɜɹ"}, {"ɜː", "ɜɹ"}, {"ɪə", "iə"}, {"ː", ""}};
constexpr Substitution kBritish[] = {{"e" TIE "ə", "ɛː"}, {"iə", "ɪə"}, {"ə" TIE "ʊ", "Q"}};
constexpr Substitution kModelEnglish[] = {{"ɾ", "T"}, {"ʔ", "t"}, {TIE, ""}};
constexpr Substitution kOtherLanguages[] = {
    {"a" TIE "ɪ", "I"}, {"a" TIE "ʊ", "W"}, {"d" TIE "z", "ʣ"}, {"d" TIE "ʒ", "ʤ"}, {"e" TIE "ɪ", "A"},
    {"o" TIE "ʊ", "O"}, {"ə" TIE "ʊ", "Q"}, {"s" TIE "s", "S"}, {"t" TIE "s", "ʦ"}, {"t" TIE "ʃ", "ʧ"},
    {"ɔ" TIE "ɪ", "Y"}, {TIE, ""},          {"-", ""},
};
#undef TIE
#undef SYLLABIC

void replace_all(std::string& text, Substitution rule) {
  std::string out;
  size_t done = 0;
  for (size_t at; (at = text.find(rule.from, done)) != std::string::npos; done = at + rule.from.size())
    out.append(text, done, at - done).append(rule.to);
  if (done == 0) return;
  text = out.append(text, done);
}

void apply_rules(std::string& text, std::span<const Substitution> rules) {
  for (const Substitution& rule : rules) replace_all(text, rule);
}

// A syllabic consonant is a faint schwa and the consonant.
void unfold_syllabic_consonants(std::string& text) {
  constexpr char32_t kSyllabic = 0x329;
  const std::u32string from = to_code_points(text);
  std::u32string to;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == kSyllabic) continue;
    if (i + 1 < from.size() && from[i + 1] == kSyllabic) to += U'ᵊ';
    to += from[i];
  }
  text = to_utf8(to);
}

// Removes "(en)", "(fr-fr)" and the like; white space becomes single spaces, none at the ends.
std::string tidy(std::string_view ipa) {
  constexpr size_t kLongestFlag = 18;
  std::string out;
  for (size_t at = 0; at < ipa.size(); ++at) {
    if (ipa[at] == '(') {
      const size_t close = ipa.substr(at, kLongestFlag).find(')');
      if (close != std::string_view::npos) {
        at += close;
        continue;
      }
    }
    const bool blank = ipa[at] == ' ' || ipa[at] == '\n' || ipa[at] == '\r' || ipa[at] == '\t';
    if (!blank) {
      out += ipa[at];
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

std::string map_espeak(std::string_view ipa, Language language, EspeakVersion version) {
  std::string text = tidy(ipa);
  if (!is_english(language)) {
    apply_rules(text, kOtherLanguages);
    return text;
  }
  apply_rules(text, kEnglish);
  unfold_syllabic_consonants(text);
  if (language == Language::american) {
    apply_rules(text, kAmerican);
  } else {
    apply_rules(text, kBritish);
  }
  if (version.is_before_1_52()) replace_all(text, {"o", "ɔ"});
  apply_rules(text, kModelEnglish);
  return text;
}

}  // namespace shoal::phonemes
