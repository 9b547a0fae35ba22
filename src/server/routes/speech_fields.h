// Fields that the bodies of all speaking routes share.
#pragma once

#include <chrono>
#include <cmath>
#include <string>

#include "server/body/schema.h"
#include "server/routes/services.h"

namespace shoal::server {

// A clip as clients send it: {"audio": base64, "text": "its words"}.
Schema<ReferenceClip> reference_clip_schema();

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
