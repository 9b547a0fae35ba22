#include "cli/voice_choice.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "cli/nearest.h"
#include "settings/voice_aliases.h"
#include "shoal/model.h"
#include "shoal/stored_voices.h"

namespace shoal::cli {
namespace {

constexpr std::string_view kOwn[] = {"default", "built-in"};

struct KnownVoice {
  std::string name;
  bool fixed = false;  // came with the model
};

bool has_own_voices(const ResolvedSettings& settings) { return traits_of(settings.config.model).own_voices; }

std::vector<KnownVoice> known_voices(const ResolvedSettings& settings) {
  std::vector<KnownVoice> known;
  if (has_own_voices(settings)) {
    for (const ModelVoice& voice : model_voices(settings.config.model).voices)
      known.push_back({voice.name, true});
  } else {
    for (const VoiceInfo& voice : clip_voices(settings.config)->list())
      known.push_back({voice.name, voice.fixed});
  }
  return known;
}

bool is_mix(std::string_view name) { return name.find_first_of("+-,(") != std::string_view::npos; }

class VoiceChoice {
 public:
  explicit VoiceChoice(const ResolvedSettings& settings)
      : own_voices_(has_own_voices(settings)),
        known_(known_voices(settings)),
        given_(parse_voice_aliases(settings.server.voice_aliases)) {}

  bool has(std::string_view name) const { return std::ranges::count(known_, name, &KnownVoice::name) > 0; }

  // Empty: the model's own; absent: not an alias.
  std::optional<std::string> target_of(std::string_view alias) const {
    for (const VoiceAlias& given : given_)
      if (given.name == alias && exists(given.voice)) return is_own(given.voice) ? "" : given.voice;
    const std::string usual = usual_voice(alias);
    if (has_fixed(usual)) return usual;
    if (is_own(alias) || settings::find_openai_voice(alias)) return "";
    return std::nullopt;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const KnownVoice& voice : known_) names.push_back(voice.name);
    for (const VoiceAlias& alias : given_) names.push_back(alias.name);
    names.insert(names.end(), std::begin(kOwn), std::end(kOwn));
    for (const settings::OpenAiVoice& voice : settings::kOpenAiVoices) names.emplace_back(voice.name);
    return names;
  }

  bool own_voices() const { return own_voices_; }

 private:
  static bool is_own(std::string_view name) { return std::ranges::count(kOwn, name) > 0; }
  bool exists(std::string_view voice) const {
    return has(voice) || is_own(voice) || (own_voices_ && is_mix(voice));
  }
  bool has_fixed(std::string_view name) const {
    return std::ranges::any_of(known_,
                               [&](const KnownVoice& voice) { return voice.fixed && voice.name == name; });
  }
  std::string usual_voice(std::string_view alias) const {
    const settings::OpenAiVoice* known = settings::find_openai_voice(alias);
    if (!known) return "";
    return std::string(own_voices_ ? settings::find_kokoro_voice(alias) : known->named);
  }

  const bool own_voices_;
  const std::vector<KnownVoice> known_;
  const std::vector<VoiceAlias> given_;
};

}  // namespace

std::string chosen_voice(const std::string& name, const ResolvedSettings& settings, bool with_references) {
  if (name.empty()) return "";
  const VoiceChoice choice(settings);
  if (choice.has(name)) return name;
  if (const auto target = choice.target_of(name)) return with_references ? "" : *target;
  const std::string meant = did_you_mean(name, choice.names());
  if (choice.own_voices()) {
    if (is_mix(name)) return name;
    fail(ErrorCode::not_found, "voice \"", printable(name), "\": the model has none of that name", meant,
         meant.empty() ? "; `shoal voices --model " + settings.config.model + "` lists them" : "");
  }
  try {
    clip_voices(settings.config)->clips(name);  // a damaged voice says why
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    fail(ErrorCode::not_found, error.message(),
         meant.empty() ? "; `shoal voices` lists what there is" : meant);
  }
  return name;
}

std::vector<std::string> voice_names(const ResolvedSettings& settings) {
  return VoiceChoice(settings).names();
}

}  // namespace shoal::cli
