// The names that clients may use for voices: the voices' own, OpenAI's, and the operator's aliases.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/engine.h"
#include "shoal/server_config.h"

namespace shoal::server {

// Immutable. An existing voice of the name always comes before an alias. Without the operator's aliases
// OpenAI's names map only to voices that came with the model, which no client can replace.
class VoiceNames {
 public:
  explicit VoiceNames(const ServerConfig& config) : given_(parse_voice_aliases(config.voice_aliases)) {}

  // The voice for the engine: the voice of that name; else the target of an alias; else, for "default" and
  // OpenAI's names, the model's own voice, ""; else the name itself, which the engine will not find. With
  // reference clips an alias has no effect: OpenAI's clients must name some voice. Reads the folder of
  // voices.
  std::string voice_for(Engine& engine, const std::string& name, bool with_references = false) const;
  // The aliases that map to a voice of this model now, sorted by name; none while it is loading. Reads the
  // folder of voices.
  std::vector<VoiceAlias> aliases_of(Engine& engine) const;
  // Throws Error(already_exists) for a name that clients may not give to a voice: its owner would speak for
  // everybody who uses the name. Ignores the case of letters (is_own_voice_name).
  void check_not_reserved(std::string_view name) const;

 private:
  // The target of an alias: absent if it is not a voice of this model.
  std::optional<std::string> target_of(Engine& engine, std::string_view name) const;
  bool is_given(std::string_view name) const;

  const std::vector<VoiceAlias> given_;  // by the operator
};

}  // namespace shoal::server
