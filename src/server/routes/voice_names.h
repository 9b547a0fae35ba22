// What clients call voices: by their own names, by OpenAI's, and by those that the operator gives them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/engine.h"
#include "shoal/server_config.h"

namespace shoal::server {

// Immutable. A voice that is really called so always comes before an alias; what OpenAI's names stand for by
// themselves is only ever a voice that came with the model, which no client can replace.
class VoiceNames {
 public:
  explicit VoiceNames(const ServerConfig& config) : given_(parse_voice_aliases(config.voice_aliases)) {}

  // The voice for the engine: one of that name; else that of an alias; else, under "default" and OpenAI's
  // names, the model's own, which is ""; else the name, which the engine will not find. With reference clips
  // an alias says nothing: OpenAI's clients must name some voice. Looks into the folder of voices.
  std::string voice_for(Engine& engine, const std::string& name, bool with_references = false) const;
  // Aliases that stand for a voice of this model now, sorted by name; none while it is being loaded. Looks
  // into the folder of voices.
  std::vector<VoiceAlias> aliases_of(Engine& engine) const;
  // Throws Error(already_exists) for a name that clients may not give a voice: whoever had it would speak for
  // everybody who asks for it. In any case of letters (is_own_voice_name).
  void check_not_reserved(std::string_view name) const;

 private:
  // What an alias stands for: absent for one that stands for no voice of this model.
  std::optional<std::string> target_of(Engine& engine, std::string_view name) const;
  bool is_given(std::string_view name) const;

  const std::vector<VoiceAlias> given_;  // by the operator
};

}  // namespace shoal::server
