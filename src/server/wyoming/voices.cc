#include "server/wyoming/voices.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "base/version.h"
#include "shoal/voices.h"

namespace shoal::server {
namespace {

// "en-us" -> "en-US", "pt_BR" -> "pt-BR": as Home Assistant writes languages.
std::string as_tag(std::string_view code) {
  std::string tag(code);
  std::ranges::replace(tag, '_', '-');
  const size_t dash = std::min(tag.find('-'), tag.size());
  for (size_t i = 0; i < tag.size(); ++i) {
    const auto byte = static_cast<unsigned char>(tag[i]);
    tag[i] = static_cast<char>(i < dash ? std::tolower(byte) : std::toupper(byte));
  }
  return tag;
}

std::string main_part(const std::string& tag) { return tag.substr(0, tag.find('-')); }

// What a voice of its own says; otherwise what the model has learned: our voice English, S1 and its
// successors those that S1 was published with.
std::vector<std::string> languages_of(Engine& engine, const VoiceInfo& voice) {
  if (!voice.language.empty()) return {as_tag(voice.language)};
  if (engine.traits().own_voices || engine.config().model.empty()) return {"en"};
  return {"en", "zh", "ja", "de", "fr", "es", "ko", "ar", "ru", "nl", "it", "pl", "pt"};
}

bool has_this_voice(Engine& engine, const std::string& voice) {
  try {
    if (!voice.empty()) engine.voices().get(voice);
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unavailable) throw;
    return false;
  }
}

// The first voice of exactly this language, else of its main part; absent where voices have none.
void choose_by_language(const Services& services, const std::string& language, LiveStart& start) {
  const std::string wanted = as_tag(language);
  bool voices_have_one = false;
  for (const bool exactly : {true, false}) {
    for (const ServedModel& model : services.models.all()) {
      if (!model.engine->traits().own_voices) continue;
      voices_have_one = true;
      for (const VoiceInfo& voice : model.engine->voices().list()) {
        const std::string tag = as_tag(voice.language);
        const bool fits = exactly ? tag == wanted : main_part(tag) == main_part(wanted);
        if (voice.language.empty() || !fits) continue;
        start.model = model.name;
        start.voice = voice.name;
        return;
      }
    }
  }
  // Models that follow the text read any language that they have learned.
  const auto follows_text = [](const ServedModel& model) { return !model.engine->traits().own_voices; };
  const auto models = services.models.all();
  const auto found = std::ranges::find_if(models, follows_text);
  if (found != models.end()) {
    start.model = found->name;
  } else if (voices_have_one) {
    throw BodyError(
        ErrorCode::not_found, "voice.language",
        concat("no voice speaks \"", printable(language), "\"; `describe` lists those there are"));
  }
}

Value attribution() { return {Value::Object{{"name", {std::string("Shoal")}}, {"url", {std::string()}}}}; }

Value voice_value(Engine& engine, const VoiceInfo& voice) {
  Value::Array languages;
  for (std::string& language : languages_of(engine, voice)) languages.push_back({std::move(language)});
  const bool own = voice.name == "default";
  return {Value::Object{{"name", {voice.name}},
                        {"description", {own ? std::string("The model's own voice") : voice.name}},
                        {"attribution", attribution()},
                        {"installed", {true}},
                        {"version", {version()}},
                        {"languages", {std::move(languages)}},
                        {"speakers", {}}}};
}

}  // namespace

LiveStart wyoming_start(const Services& services, const WyomingRequest& request) {
  const WyomingVoice& wanted = request.voice;
  if (!wanted.speaker.empty() && wanted.speaker != wanted.name)
    throw BodyError(ErrorCode::unsupported, "voice.speaker",
                    "voices here have one speaker each; choose another voice");
  LiveStart start;
  start.model = services.models.first().name;
  if (wanted.name.empty()) {
    if (!wanted.language.empty()) choose_by_language(services, wanted.language, start);
    return start;
  }
  for (const ServedModel& model : services.models.all()) {
    const std::string voice = services.voice_names.voice_for(*model.engine, wanted.name);
    if (!has_this_voice(*model.engine, voice)) continue;
    start.model = model.name;
    start.voice = voice;
    return start;
  }
  throw BodyError(
      ErrorCode::not_found, "voice.name",
      concat("there is no voice \"", printable(wanted.name), "\"; `describe` lists those there are"));
}

Value wyoming_info(const Services& services) {
  Value::Array voices;
  std::set<std::string> named;
  const auto add = [&](Engine& engine, const VoiceInfo& voice) {
    if (named.insert(voice.name).second) voices.push_back(voice_value(engine, voice));
  };
  for (const ServedModel& model : services.models.all()) {
    add(*model.engine, {.name = "default"});
    for (const VoiceInfo& voice : model.engine->voices().list()) add(*model.engine, voice);
  }
  Value::Object program{{"name", {std::string("shoal")}},
                        {"description", {std::string("Shoal text to speech")}},
                        {"attribution", attribution()},
                        {"installed", {true}},
                        {"version", {version()}},
                        {"voices", {std::move(voices)}},
                        {"supports_synthesize_streaming", {true}}};
  Value::Array programs;
  programs.push_back({std::move(program)});
  Value::Object info{{"tts", {std::move(programs)}}};
  for (const char* other : {"asr", "handle", "intent", "wake", "mic", "snd"})
    info.emplace_back(other, Value{Value::Array{}});
  return {std::move(info)};
}

}  // namespace shoal::server
