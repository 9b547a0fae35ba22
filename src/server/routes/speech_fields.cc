#include "server/routes/speech_fields.h"

#include "server/body/schema_fields.h"

namespace shoal::server {
namespace {

// Values that Fish-Speech's clients send by default.
constexpr float kUsualTemperature = 0.8f, kUsualTopP = 0.8f, kUsualPenalty = 1.1f;
constexpr int kChunkLengthOfClient = 300;  // the official one's; others leave the server's default

}  // namespace

Schema<ReferenceClip> reference_clip_schema() {
  return {
      bytes("audio", &ReferenceClip::audio, "a recording of the voice: wav, flac, ogg, mp3, aiff").required(),
      text("text", &ReferenceClip::text, "the words spoken in it").required()};
}

void forget_usual_sampling(const Engine& engine, SpeechRequest& request) {
  if (!engine.traits().phonemes) return;
  if (request.temperature == kUsualTemperature) request.temperature.reset();
  if (request.top_p == kUsualTopP) request.top_p.reset();
  if (request.repetition_penalty == kUsualPenalty) request.repetition_penalty.reset();
  if (request.chunk_length == kChunkLengthOfClient) request.chunk_length = SpeechRequest().chunk_length;
}

}  // namespace shoal::server
