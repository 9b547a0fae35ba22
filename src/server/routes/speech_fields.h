// Fields that the bodies of all speaking routes share.
#pragma once

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "server/body/schema.h"
#include "server/routes/services.h"

namespace shoal::server {

// A clip as clients send it: {"audio": base64, "text": "its words"}, and of models that read speakers whose
// voice it is: "speaker": 0.
Schema<ReferenceClip> reference_clip_schema();

// The voice of each speaker: {"0": "clara", "1": "hugo"}. Throws BodyError(invalid_argument).
std::vector<SpeakerVoice> read_voices(const Value& value, const std::string& where);
template <typename Body>
Field<Body> voices_field(std::vector<SpeakerVoice> Body::* member) {
  FieldDoc doc{.name = "voices",
               .type = "object",
               .help =
                   "the voice of each speaker of the text, of models that understand speakers: "
                   "{\"0\": \"clara\", \"1\": \"hugo\"} for \"<|speaker:0|>Hi. <|speaker:1|>Hello.\""};
  return {std::move(doc), [member](const Value& value, const std::string& where, Body& into) {
            into.*member = read_voices(value, where);
          }};
}
// With the names that the engine has for them (VoiceNames::voice_for). Reads the folder of voices.
std::vector<SpeakerVoice> voices_for(const Services& services, Engine& engine,
                                     std::vector<SpeakerVoice> voices);

// Models that do not sample tokens refuse sampling fields and the length of utterances by name. Fish-Speech's
// clients always send their usual values; for such a model those are ignored.
void forget_usual_sampling(const Engine& engine, SpeechRequest& request);

// Rates of an answer, in Hz: what every route takes.
constexpr Range kSampleRatesHz = {8000, 48000};

inline std::chrono::milliseconds as_timeout(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

// The fields of sampling, under the names that every body gives them. Special tokens are text, unless a body
// has a field to say otherwise: what clients send must not steer the model.
template <typename Body>
void take_sampling(const Body& body, SpeechRequest& request) {
  request.temperature = body.temperature;
  request.top_p = body.top_p;
  request.repetition_penalty = body.repetition_penalty;
  request.seed = body.seed;
  request.max_new_tokens = body.max_new_tokens;
  request.chunk_length = body.chunk_length;
  request.special_tokens = false;
  if constexpr (requires { body.top_k; }) request.top_k = body.top_k;
  if constexpr (requires { body.special_tokens; }) request.special_tokens = body.special_tokens;
}

}  // namespace shoal::server
