#include "shoal/voices.h"

#include <memory>
#include <string>

#include "capi/buffer.h"
#include "capi/call.h"
#include "capi/config.h"
#include "capi/engine.h"
#include "capi/request.h"
#include "capi/running_threads.h"
#include "shoal/stored_voices.h"

struct shoal_voices : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::voices;
  // `owner` keeps the voices alive.
  shoal_voices(std::shared_ptr<void> owner, shoal::Voices& all)
      : Handle(kKind), owned_by(std::move(owner)), voices(all) {}
  const std::shared_ptr<void> owned_by;
  shoal::Voices& voices;
};

namespace shoal::capi {
namespace {

Voices& voices_of(const shoal_voices* voices) { return held(voices, "voices").voices; }

server::Value voice_json(const VoiceInfo& voice) {
  return {server::Value::Object{{"name", {voice.name}},
                                {"clips", {voice.clips}},
                                {"transcripts", texts_value(voice.transcripts)},
                                {"language", {voice.language}},
                                {"fixed", {voice.fixed}}}};
}

}  // namespace
}  // namespace shoal::capi

using namespace shoal::capi;

shoal_code shoal_engine_voices(shoal_engine* engine, shoal_voices** voices, shoal_error* error) {
  return call(error, [&] {
    shoal_voices*& out = output(voices, "voices");
    const auto shared = held(engine, "engine").shared;
    out = new shoal_voices(shared, shared->engine().voices());
  });
}

shoal_code shoal_voices_open(const shoal_config* config, shoal_voices** voices, shoal_error* error) {
  return call(error, [&] {
    shoal_voices*& out = output(voices, "voices");
    const std::shared_ptr<shoal::ClipVoices> stored = shoal::clip_voices(config_of(config));
    out = new shoal_voices(stored, *stored);
  });
}

// Those of an engine may be the last to hold it, whose threads a child of a fork does not have.
void shoal_voices_free(shoal_voices* voices) {
  if (!in_child_of_running()) delete voices;
}

shoal_code shoal_voices_list(const shoal_voices* voices, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    shoal::server::Value::Array all;
    for (const shoal::VoiceInfo& voice : voices_of(voices).list()) all.push_back(voice_json(voice));
    out = json_buffer({std::move(all)});
  });
}

shoal_code shoal_voices_get(const shoal_voices* voices, const char* name, shoal_buffer** json,
                            shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer(voice_json(voices_of(voices).get(text_of(name, "name"))));
  });
}

shoal_code shoal_voices_add(shoal_voices* voices, const char* name, const void* audio, size_t size,
                            const char* text, shoal_error* error) {
  return call(error, [&] {
    voices_of(voices).add(text_of(name, "name"), bytes_of(audio, size, "audio"), text_of(text, "text"));
  });
}

shoal_code shoal_voices_rename(shoal_voices* voices, const char* name, const char* new_name,
                               shoal_error* error) {
  return call(error, [&] { voices_of(voices).rename(text_of(name, "name"), text_of(new_name, "new_name")); });
}

shoal_code shoal_voices_remove(shoal_voices* voices, const char* name, shoal_error* error) {
  return call(error, [&] { voices_of(voices).remove(text_of(name, "name")); });
}
