#include "server/routes/speech_fields.h"

#include <algorithm>
#include <array>

#include "server/body/schema_fields.h"

namespace shoal::server {
namespace {

// Names that speak with the model's own voice, and the published voice of Kokoro that OpenAI's stand for
// (Kokoro-FastAPI 0.8).
struct OwnVoice {
  std::string_view name, of_kokoro;
};
constexpr std::array<OwnVoice, 15> kOwnVoices = {{{"alloy", "am_adam"},
                                                  {"ash", "af_nicole"},
                                                  {"ballad", ""},
                                                  {"coral", "bf_emma"},
                                                  {"echo", "af_bella"},
                                                  {"fable", "af_sarah"},
                                                  {"nova", "bf_isabella"},
                                                  {"onyx", "bm_george"},
                                                  {"sage", "am_michael"},
                                                  {"shimmer", "af_sky"},
                                                  {"verse", ""},
                                                  {"marin", ""},
                                                  {"cedar", ""},
                                                  {"default", ""},
                                                  {"built-in", ""}}};

// What Fish-Speech's clients send unasked.
constexpr float kUsualTemperature = 0.8f, kUsualTopP = 0.8f, kUsualPenalty = 1.1f;
constexpr int kChunkLengthOfClient = 300;  // the official one's; others leave the server's default

bool has_voice(Engine& engine, const std::string& name) {
  if (name.empty()) return false;
  try {
    engine.voices().get(name);
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
  return name.empty() || std::ranges::count(kOwnVoices, name, &OwnVoice::name) > 0;
}

std::string engine_voice(Engine& engine, const std::string& name) {
  if (!is_own_voice(name) || has_voice(engine, name)) return name;
  const auto known = std::ranges::find(kOwnVoices, name, &OwnVoice::name);
  if (known == kOwnVoices.end() || known->of_kokoro.empty() || !engine.traits().own_voices) return "";
  std::string published(known->of_kokoro);
  return has_voice(engine, published) ? published : "";
}

void forget_usual_sampling(const Engine& engine, SpeechRequest& request) {
  if (!engine.traits().phonemes) return;
  if (request.temperature == kUsualTemperature) request.temperature.reset();
  if (request.top_p == kUsualTopP) request.top_p.reset();
  if (request.repetition_penalty == kUsualPenalty) request.repetition_penalty.reset();
  if (request.chunk_length == kChunkLengthOfClient) request.chunk_length = SpeechRequest().chunk_length;
}

}  // namespace shoal::server
