#include "server/routes/speech_fields.h"

#include <charconv>

#include "server/body/place.h"
#include "server/body/schema_fields.h"

namespace shoal::server {
namespace {

// Values that Fish-Speech's clients send by default.
constexpr float kUsualTemperature = 0.8f, kUsualTopP = 0.8f, kUsualPenalty = 1.1f;
constexpr size_t kMostSpeakers = 16;
constexpr int kChunkLengthOfClient = 300;  // the official one's; others leave the server's default

}  // namespace

Schema<ReferenceClip> reference_clip_schema() {
  return {
      bytes("audio", &ReferenceClip::audio, "a recording of the voice: wav, flac, ogg, mp3, aiff").required(),
      text("text", &ReferenceClip::text, "the words spoken in it").required(),
      integer("speaker", &ReferenceClip::speaker, {0, 999},
              "whose voice it is, of models that understand speakers; default: the first clip is speaker "
              "0's, the "
              "second 1's, ...")};
}

std::vector<SpeakerVoice> read_voices(const Value& value, const std::string& where) {
  const Value::Object& voices = read_object(value, where);
  if (voices.size() > kMostSpeakers)
    throw BodyError(ErrorCode::invalid_argument, where,
                    concat("expected at most ", kMostSpeakers, " speakers, found ", voices.size()));
  std::vector<SpeakerVoice> read;
  for (const auto& [number, voice] : voices) {
    const std::string place = member_path(where, number);
    int speaker = 0;
    const char* last = number.data() + number.size();
    const auto [end, error] = std::from_chars(number.data(), last, speaker);
    if (number.empty() || end != last || error != std::errc{} || speaker < 0)
      throw BodyError(ErrorCode::invalid_argument, place,
                      "expected the number of a speaker as the name, as in {\"0\": \"clara\"}");
    read.push_back({speaker, read_text(voice, place)});
  }
  return read;
}

std::vector<SpeakerVoice> voices_for(const Services& services, Engine& engine,
                                     std::vector<SpeakerVoice> voices) {
  if (!engine.traits().speakers) return voices;  // which the engine refuses
  for (SpeakerVoice& speaker : voices) speaker.voice = services.voice_names.voice_for(engine, speaker.voice);
  return voices;
}

void forget_usual_sampling(const Engine& engine, SpeechRequest& request) {
  if (!engine.traits().phonemes) return;
  if (request.temperature == kUsualTemperature) request.temperature.reset();
  if (request.top_p == kUsualTopP) request.top_p.reset();
  if (request.repetition_penalty == kUsualPenalty) request.repetition_penalty.reset();
  if (request.chunk_length == kChunkLengthOfClient) request.chunk_length = SpeechRequest().chunk_length;
}

}  // namespace shoal::server
