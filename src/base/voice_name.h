// Which names a voice may have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace shoal {

constexpr size_t kMaxVoiceNameBytes = 255;

// 1 to 255 letters, digits, '-', '_' or ' ', fish-speech's rule: a name is a single path component. ASCII
// only, whatever the locale.
constexpr bool is_voice_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == ' ';
}
constexpr bool is_voice_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxVoiceNameBytes &&
         std::ranges::all_of(name, is_voice_name_character);
}

// Whether they differ only in the case of their letters.
constexpr bool equal_voice_names(std::string_view a, std::string_view b) {
  constexpr auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// "default" and "built-in", which mean the model's own voice, in any case of letters: the folder of voices
// may be on a disk that ignores case.
constexpr bool is_own_voice_name(std::string_view name) {
  constexpr std::string_view kOwn[] = {"default", "built-in"};
  return std::ranges::any_of(kOwn, [name](std::string_view own) { return equal_voice_names(name, own); });
}

}  // namespace shoal
