// What a voice may be called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace shoal {

constexpr size_t kMaxVoiceNameBytes = 255;

// 1 to 255 letters, digits, '-', '_' or ' ', fish-speech's rule: so that a name is one part of a path
// and nothing else. ASCII only, whatever the locale says.
constexpr bool is_voice_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == ' ';
}
constexpr bool is_voice_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxVoiceNameBytes &&
         std::ranges::all_of(name, is_voice_name_character);
}

}  // namespace shoal
