#include "server/routes/speech_fields.h"

#include <algorithm>
#include <array>

#include "server/body/schema_fields.h"

namespace shoal::server {
namespace {

constexpr std::array<std::string_view, 15> kOwnVoices = {"alloy", "ash",   "ballad", "coral",   "echo",
                                                         "fable", "nova",  "onyx",   "sage",    "shimmer",
                                                         "verse", "marin", "cedar",  "default", "built-in"};

bool has_folder(const Services& services, const std::string& name) {
  if (name.empty()) return false;
  try {
    services.engine.voices().get(name);
    return true;
  } catch (const Error& error) {
    return error.code() != ErrorCode::not_found;  // a damaged one is for the engine to tell
  }
}

}  // namespace

Schema<ReferenceClip> reference_clip_schema() {
  return {
      bytes("audio", &ReferenceClip::audio, "a recording of the voice: wav, flac, ogg, mp3, aiff").required(),
      text("text", &ReferenceClip::text, "the words spoken in it").required()};
}

bool is_own_voice(const std::string& name) {
  return name.empty() || std::find(kOwnVoices.begin(), kOwnVoices.end(), name) != kOwnVoices.end();
}

std::string engine_voice(const Services& services, const std::string& name) {
  return !is_own_voice(name) || has_folder(services, name) ? name : "";
}

}  // namespace shoal::server
