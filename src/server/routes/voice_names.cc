#include "server/routes/voice_names.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/voice_name.h"
#include "settings/voice_aliases.h"

namespace shoal::server {
namespace {

using settings::find_openai_voice;
using settings::kOpenAiVoices;

constexpr std::string_view kDefault = "default";

bool has_voice(Engine& engine, const std::string& name) {
  if (name.empty()) return false;
  try {
    engine.voices().get(name);
    return true;
  } catch (const Error& error) {
    // The engine reports a damaged voice; a mix does not exist for models without mixes.
    const bool is_name = is_voice_name(name);
    return error.code() != ErrorCode::not_found && (is_name || error.code() != ErrorCode::invalid_argument);
  }
}

bool came_with_the_model(Engine& engine, const std::string& name) {
  try {
    return engine.voices().get(name).fixed;
  } catch (const Error&) {
    return false;
  }
}

bool is_known_name(std::string_view name) {
  return name.empty() || name == kDefault || name == "built-in" || find_openai_voice(name);
}

// The default target of an OpenAI name.
std::optional<std::string> usual_voice(Engine& engine, std::string_view name) {
  if (!find_openai_voice(name)) return std::nullopt;
  if (engine.traits().own_voices) {
    std::string published(settings::find_kokoro_voice(name));
    return has_voice(engine, published) ? std::optional(published) : std::nullopt;
  }
  if (!engine.config().with_encoder) return std::nullopt;  // a clip could not be followed
  std::string named(find_openai_voice(name)->named);
  return came_with_the_model(engine, named) ? std::optional(named) : std::nullopt;
}

}  // namespace

bool VoiceNames::is_given(std::string_view name) const {
  return std::ranges::count(given_, name, &VoiceAlias::name) > 0;
}

std::optional<std::string> VoiceNames::target_of(Engine& engine, std::string_view name) const {
  for (const VoiceAlias& alias : given_)
    if (alias.name == name && (alias.voice == kDefault || has_voice(engine, alias.voice))) return alias.voice;
  return usual_voice(engine, name);
}

std::string VoiceNames::voice_for(Engine& engine, const std::string& name, bool with_references) const {
  const bool known = is_known_name(name) || is_given(name);
  if (!known || has_voice(engine, name)) return name;
  if (with_references) return "";
  // A client may hope for OpenAI's names; whoever gave a name of their own meant one of its targets.
  std::string target = target_of(engine, name).value_or(is_known_name(name) ? "" : name);
  return target == kDefault ? "" : target;
}

std::vector<VoiceAlias> VoiceNames::aliases_of(Engine& engine) const {
  std::set<std::string_view> names;
  for (const VoiceAlias& alias : given_) names.insert(alias.name);
  for (const settings::OpenAiVoice& voice : kOpenAiVoices) names.insert(voice.name);
  std::vector<VoiceAlias> aliases;
  try {
    for (const std::string_view name : names) {
      std::string alias(name);
      if (has_voice(engine, alias)) continue;
      if (auto voice = target_of(engine, name)) aliases.push_back({std::move(alias), *std::move(voice)});
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unavailable) throw;
  }
  return aliases;
}

void VoiceNames::check_not_reserved(std::string_view name) const {
  const auto is_this = [name](std::string_view reserved) { return equal_voice_names(reserved, name); };
  const bool own = is_own_voice_name(name);
  if (!own && std::ranges::none_of(kOpenAiVoices, is_this, &settings::OpenAiVoice::name) &&
      std::ranges::none_of(given_, is_this, &VoiceAlias::name))
    return;
  fail(ErrorCode::already_exists, "voice \"", name, "\": is reserved for ",
       own ? "the model's own voice" : "the voice that it stands for", "; choose another name");
}

}  // namespace shoal::server
