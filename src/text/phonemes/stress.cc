#include "text/phonemes/stress.h"

#include <algorithm>
#include <array>

#include "text/phonemes/code_points.h"

namespace shoal::phonemes {
namespace {

constexpr char32_t kPrimary = U'ˈ';
constexpr char32_t kSecondary = U'ˌ';
constexpr std::u32string_view kVowels = U"AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ";
constexpr std::u32string_view kDiphthongs = U"AIOQWYʤʧ";

// Unstressed; the vowel that takes the stress is the first but in W.
constexpr std::array<std::string_view, 26> kAmericanLetters = {
    "A",  "bi", "si", "di",  "i",  "ɛf", "ʤi", "Aʧ", "I",  "ʤA",      "kA",  "ɛl", "ɛm",
    "ɛn", "O",  "pi", "kju", "ɑɹ", "ɛs", "ti", "ju", "vi", "dʌbᵊlju", "ɛks", "wI", "zi"};
constexpr std::array<std::string_view, 26> kBritishLetters = {
    "A",  "biː", "siː", "diː",  "iː", "ɛf", "ʤiː", "Aʧ",  "I",   "ʤA",       "kA",  "ɛl", "ɛm",
    "ɛn", "Q",   "piː", "kjuː", "ɑː", "ɛs", "tiː", "juː", "viː", "dʌbᵊljuː", "ɛks", "wI", "zɛd"};

bool has(const std::u32string& text, char32_t c) { return text.find(c) != std::u32string::npos; }
void drop(std::u32string& text, char32_t c) { std::erase(text, c); }
void swap_marks(std::u32string& text, char32_t from, char32_t to) {
  std::replace(text.begin(), text.end(), from, to);
}

void add_mark(std::u32string& text, char32_t mark) {
  const size_t vowel = text.find_first_of(kVowels);
  if (vowel != std::u32string::npos) text.insert(vowel, 1, mark);
}

int weight(std::string_view phonemes) {
  int sum = 0;
  for (const char32_t c : to_code_points(phonemes))
    sum += kDiphthongs.find(c) == std::u32string_view::npos ? 1 : 2;
  return sum;
}

}  // namespace

bool is_vowel(char32_t phoneme) { return kVowels.find(phoneme) != std::u32string_view::npos; }

bool starts_with_vowel(std::string_view phonemes) {
  for (const char32_t c : to_code_points(phonemes)) {
    if (c != kPrimary && c != kSecondary) return is_vowel(c) || c == U'ᵊ' || c == U'ɐ';
  }
  return false;
}

std::string apply_stress(std::string_view phonemes, double stress) {
  std::u32string text = to_code_points(phonemes);
  const bool primary = has(text, kPrimary);
  const bool secondary = has(text, kSecondary);
  if (stress < -1) {
    drop(text, kPrimary);
    drop(text, kSecondary);
  } else if (stress == -1 || ((stress == 0 || stress == -0.5) && primary)) {
    drop(text, kSecondary);
    swap_marks(text, kPrimary, kSecondary);
  } else if (stress >= 0 && stress <= 1 && !primary && !secondary) {
    add_mark(text, kSecondary);
  } else if (stress >= 1 && !primary && secondary) {
    swap_marks(text, kSecondary, kPrimary);
  } else if (stress > 1 && !primary && !secondary) {
    add_mark(text, kPrimary);
  }
  return to_utf8(text);
}

std::string glue_compound(std::vector<std::string> parts) {
  const auto is_primary = [](const std::string& part) { return part.find("ˈ") != std::string::npos; };
  const auto primaries = static_cast<size_t>(std::count_if(parts.begin(), parts.end(), is_primary));
  if (primaries > (parts.size() + 1) / 2) {
    std::vector<size_t> order(parts.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto rank = [&](size_t i) { return std::pair(is_primary(parts[i]), weight(parts[i])); };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
    for (size_t i = 0; i < parts.size() / 2; ++i) parts[order[i]] = apply_stress(parts[order[i]], -0.5);
  }
  std::string glued;
  for (const std::string& part : parts) glued += part;
  return glued;
}

std::string spell_letters(std::string_view letters, bool british) {
  std::vector<std::string_view> names;
  for (const char c : letters) {
    const char upper = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    if (upper >= 'A' && upper <= 'Z')
      names.push_back((british ? kBritishLetters : kAmericanLetters)[static_cast<size_t>(upper - 'A')]);
  }
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += apply_stress(names[i], i + 1 < names.size() ? 1 : 2);
  return out;
}

}  // namespace shoal::phonemes
