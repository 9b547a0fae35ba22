#include "server/routes/eleven_lists.h"

#include <set>

#include "shoal/voices.h"

namespace shoal::server {
namespace {

Value texts(std::initializer_list<std::pair<const char*, std::string>> members) {
  Value::Object object;
  for (const auto& [name, value] : members)
    if (!value.empty()) object.emplace_back(name, Value{value});
  return {std::move(object)};
}

Value voice_of(const ServedModel& model, const VoiceInfo& info) {
  const bool own = info.name == "default";
  const bool stays = own || info.fixed || model.engine->traits().own_voices;
  return {Value::Object{
      {"voice_id", {info.name}},
      {"name", {own ? std::string("The model's own voice") : info.name}},
      {"category", {std::string(stays ? "premade" : "cloned")}},
      {"labels", texts({{"model", model.name}, {"language", info.language}})},
      {"available_for_tiers", {Value::Array{}}},
      {"high_quality_base_model_ids", {Value::Array{{model.name}}}},
      {"settings", {Value::Object{{"stability", {0.5}}, {"similarity_boost", {0.75}}, {"speed", {1.0}}}}}}};
}

}  // namespace

Value eleven_models(const Models& models) {
  Value::Array list;
  for (const ServedModel& model : models.all())
    list.push_back({Value::Object{{"model_id", {model.name}},
                                  {"name", {model.name}},
                                  {"can_do_text_to_speech", {true}},
                                  {"can_do_voice_conversion", {false}},
                                  {"can_be_finetuned", {false}},
                                  {"can_use_style", {false}},
                                  {"can_use_speaker_boost", {false}},
                                  {"languages", {Value::Array{}}}}});
  return {std::move(list)};
}

Value eleven_voices(const Services& services) {
  Value::Array voices;
  std::set<std::string> named;
  const auto add = [&](const ServedModel& model, const VoiceInfo& info) {
    if (named.insert(info.name).second) voices.push_back(voice_of(model, info));
  };
  for (const ServedModel& model : services.models.all()) {
    add(model, {.name = "default"});
    for (const VoiceInfo& info : model.engine->voices().list()) add(model, info);
  }
  return {Value::Object{{"voices", {std::move(voices)}}}};
}

}  // namespace shoal::server
