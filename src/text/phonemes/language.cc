#include "text/phonemes/language.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::phonemes {
namespace {

struct Entry {
  Language language;
  std::string_view alias, name;  // espeak-ng knows it by the same name as our callers
};
constexpr Entry kLanguages[] = {
    {Language::american, "en-us", "American English"},
    {Language::british, "en-gb", "British English"},
    {Language::spanish, "es", "Spanish"},
    {Language::french, "fr-fr", "French"},
    {Language::hindi, "hi", "Hindi"},
    {Language::italian, "it", "Italian"},
    {Language::portuguese, "pt-br", "Brazilian Portuguese"},
};

// Their text needs a separate front end; their voices speak phonemes like any other.
struct WithoutFrontEnd {
  char letter;
  std::string_view alias, name;
};
constexpr WithoutFrontEnd kWithoutFrontEnd[] = {{'j', "ja", "Japanese"}, {'z', "zh", "Mandarin"}};

const Entry& entry_of(Language language) {
  const Entry* found = std::find_if(std::begin(kLanguages), std::end(kLanguages),
                                    [&](const Entry& entry) { return entry.language == language; });
  CHECK(found != std::end(kLanguages), "language ", static_cast<int>(language));
  return *found;
}

[[noreturn]] void refuse_text_of(const WithoutFrontEnd& language) {
  fail(ErrorCode::unsupported, "language: ", language.name, " (\"", language.letter,
       "\") text cannot be turned into phonemes; send phonemes instead of text");
}

}  // namespace

std::string_view espeak_name(Language language) { return entry_of(language).alias; }
std::string_view name_of(Language language) { return entry_of(language).name; }

Language parse_language(std::string_view code) {
  std::string lower(code.substr(0, 16));
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const Entry& entry : kLanguages) {
    if (lower == entry.alias || lower == std::string_view(reinterpret_cast<const char*>(&entry.language), 1))
      return entry.language;
  }
  for (const WithoutFrontEnd& language : kWithoutFrontEnd) {
    if (lower == language.alias || lower == std::string_view(&language.letter, 1)) refuse_text_of(language);
  }
  fail(ErrorCode::invalid_argument,
       "language: expected a, b, e, f, h, i, p, en-us, en-gb, es, fr-fr, hi, it or pt-br, got \"",
       printable(code), "\"");
}

Language language_of_voice(std::string_view voice) {
  const std::string_view letter = voice.substr(0, 1);
  for (const Entry& entry : kLanguages) {
    if (!letter.empty() && letter[0] == letter_of(entry.language)) return entry.language;
  }
  for (const WithoutFrontEnd& language : kWithoutFrontEnd) {
    if (!letter.empty() && letter[0] == language.letter) refuse_text_of(language);
  }
  fail(ErrorCode::invalid_argument,
       "voice: its first letter says its language (a, b, e, f, h, i or p), got \"", printable(voice),
       "\"; give the language");
}

}  // namespace shoal::phonemes
