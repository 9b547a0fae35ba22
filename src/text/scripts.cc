#include "text/scripts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "text/characters.h"
#include "text/utf8.h"

namespace shoal::text {
namespace {

enum class Script : uint8_t {
  latin,
  greek,
  cyrillic,
  hebrew,
  arabic,
  devanagari,
  bengali,
  tamil,
  thai,
  georgian,
  armenian,
  hangul,
  kana,
  han,
  other
};
constexpr size_t kScripts = 15;
constexpr std::array<std::string_view, kScripts> kNames = {
    "Latin", "Greek",    "Cyrillic", "Hebrew", "Arabic", "Devanagari", "Bengali",          "Tamil",
    "Thai",  "Georgian", "Armenian", "Hangul", "Kana",   "Han",        "of another script"};

// Blocks of Unicode 15 with letters of a script, in order.
struct Block {
  char32_t first, last;
  Script script;
};
constexpr Block kBlocks[] = {
    {0x0041, 0x02AF, Script::latin},      {0x0370, 0x03FF, Script::greek},
    {0x0400, 0x052F, Script::cyrillic},   {0x0531, 0x058F, Script::armenian},
    {0x0590, 0x05FF, Script::hebrew},     {0x0600, 0x06FF, Script::arabic},
    {0x0750, 0x077F, Script::arabic},     {0x0870, 0x08FF, Script::arabic},
    {0x0900, 0x097F, Script::devanagari}, {0x0980, 0x09FF, Script::bengali},
    {0x0B80, 0x0BFF, Script::tamil},      {0x0E00, 0x0E7F, Script::thai},
    {0x10A0, 0x10FF, Script::georgian},   {0x1100, 0x11FF, Script::hangul},
    {0x1C80, 0x1C8F, Script::cyrillic},   {0x1C90, 0x1CBF, Script::georgian},
    {0x1E00, 0x1EFF, Script::latin},      {0x1F00, 0x1FFF, Script::greek},
    {0x2C60, 0x2C7F, Script::latin},      {0x2D00, 0x2D2F, Script::georgian},
    {0x2DE0, 0x2DFF, Script::cyrillic},   {0x3005, 0x3007, Script::han},
    {0x3040, 0x30FF, Script::kana},       {0x3130, 0x318F, Script::hangul},
    {0x31F0, 0x31FF, Script::kana},       {0x3400, 0x4DBF, Script::han},
    {0x4E00, 0x9FFF, Script::han},        {0xA640, 0xA69F, Script::cyrillic},
    {0xA720, 0xA7FF, Script::latin},      {0xA8E0, 0xA8FF, Script::devanagari},
    {0xA960, 0xA97F, Script::hangul},     {0xAB30, 0xAB6F, Script::latin},
    {0xAC00, 0xD7FF, Script::hangul},     {0xF900, 0xFAFF, Script::han},
    {0xFB00, 0xFB06, Script::latin},      {0xFB13, 0xFB17, Script::armenian},
    {0xFB1D, 0xFB4F, Script::hebrew},     {0xFB50, 0xFDFF, Script::arabic},
    {0xFE70, 0xFEFE, Script::arabic},     {0xFF21, 0xFF5A, Script::latin},
    {0xFF66, 0xFF9F, Script::kana},       {0xFFA0, 0xFFDC, Script::hangul},
    {0x1B000, 0x1B16F, Script::kana},     {0x20000, 0x323AF, Script::han},
};

constexpr uint32_t bit(Script script) { return 1u << static_cast<unsigned>(script); }

// The languages not written only in Latin letters, and the most spoken ones that are.
uint32_t scripts_of(std::string_view language) {
  constexpr uint32_t kHan = bit(Script::han), kLatin = bit(Script::latin);
  static constexpr std::pair<std::string_view, uint32_t> kOthers[] = {
      {"ar", bit(Script::arabic)},
      {"be", bit(Script::cyrillic)},
      {"bg", bit(Script::cyrillic)},
      {"bn", bit(Script::bengali)},
      {"el", bit(Script::greek)},
      {"fa", bit(Script::arabic)},
      {"he", bit(Script::hebrew)},
      {"hi", bit(Script::devanagari)},
      {"hy", bit(Script::armenian)},
      {"ja", kHan | bit(Script::kana)},
      {"ka", bit(Script::georgian)},
      {"ko", kHan | bit(Script::hangul)},
      {"mr", bit(Script::devanagari)},
      {"ne", bit(Script::devanagari)},
      {"ru", bit(Script::cyrillic)},
      {"sr", kLatin | bit(Script::cyrillic)},
      {"ta", bit(Script::tamil)},
      {"th", bit(Script::thai)},
      {"uk", bit(Script::cyrillic)},
      {"ur", bit(Script::arabic)},
      {"zh", kHan},
  };
  static constexpr std::string_view kOfLatin[] = {"cs", "da", "de", "en", "es", "fi", "fr", "hu", "id", "it",
                                                  "nl", "no", "pl", "pt", "ro", "sk", "sv", "sw", "tr", "vi"};
  if (std::ranges::count(kOfLatin, language) > 0) return kLatin;
  const auto found = std::ranges::find(kOthers, language, [](const auto& other) { return other.first; });
  return found == std::end(kOthers) ? 0 : found->second;
}

Script script_of(char32_t letter) {
  const auto block = std::ranges::lower_bound(kBlocks, letter, {}, &Block::last);
  return block != std::end(kBlocks) && letter >= block->first ? block->script : Script::other;
}

}  // namespace

std::string_view foreign_script(std::string_view text, std::span<const std::string> languages) {
  uint32_t at_home = 0;
  for (const std::string& language : languages) {
    const uint32_t scripts = scripts_of(language);
    if (scripts == 0) return "";
    at_home |= scripts;
  }
  if (at_home == 0) return "";
  std::array<int64_t, kScripts> letters{};
  for (size_t at = 0; at < text.size(); at += character_bytes(text[at])) {
    const char32_t c = code_point_at(text, at);
    if (is_letter(c)) ++letters[static_cast<size_t>(script_of(c))];
  }
  int64_t known = 0, foreign = 0;
  size_t most = 0;
  for (size_t i = 0; i < kScripts; ++i) {
    const bool is_known = (at_home >> i & 1) != 0;
    (is_known ? known : foreign) += letters[i];
    if (is_known) letters[i] = 0;
    if (letters[i] > letters[most]) most = i;
  }
  return foreign > known ? kNames[most] : "";
}

}  // namespace shoal::text
