#include "settings/voice_aliases.h"

#include <algorithm>

#include "base/blanks.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/voice_name.h"
#include "shoal/server_config.h"

namespace shoal {
namespace {

constexpr size_t kMostVoiceBytes = 4096;  // a mix of a Kokoro model's voices may be long

VoiceAlias alias_of(std::string_view part) {
  const size_t equals = std::min(part.find('='), part.size());
  VoiceAlias alias{.name = std::string(without_blanks(part.substr(0, equals))),
                   .voice = std::string(without_blanks(part.substr(std::min(equals + 1, part.size()))))};
  if (alias.name.empty() || alias.voice.empty())
    fail(ErrorCode::invalid_argument, "voice_aliases: expected NAME=VOICE with commas between, got \"",
         printable(part), "\"");
  if (!is_voice_name(alias.name))
    fail(ErrorCode::invalid_argument,
         "voice_aliases: expected names of letters, digits, '-', '_' and ' ', got \"", printable(alias.name),
         "\"");
  if (is_own_voice_name(alias.name))
    fail(ErrorCode::invalid_argument, "voice_aliases: expected other names than \"", printable(alias.name),
         "\", which is the model's own voice");
  if (!is_utf8(alias.voice) || alias.voice.size() > kMostVoiceBytes ||
      printable(alias.voice, kMostVoiceBytes) != alias.voice)
    fail(ErrorCode::invalid_argument, "voice_aliases: expected a voice or a mix of voices, got \"",
         printable(alias.voice), "\"");
  return alias;
}

}  // namespace

std::vector<VoiceAlias> parse_voice_aliases(std::string_view list) {
  std::vector<VoiceAlias> aliases;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    aliases.push_back(alias_of(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return aliases;
}

}  // namespace shoal
