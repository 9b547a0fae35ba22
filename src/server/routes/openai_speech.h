// The body of POST /v1/audio/speech: the fields of OpenAI's API, those of Kokoro-FastAPI (spec/kokoro.md 13),
// ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/body/schema.h"
#include "server/routes/speech_answer.h"

namespace shoal::server {

struct OpenAiSpeech {
  std::string model, input, voice;
  std::string response_format = "mp3", stream_format = "audio";
  double speed = 1;

  std::optional<uint64_t> seed;
  std::optional<float> temperature, top_p, repetition_penalty;
  std::optional<int> top_k;
  int64_t max_new_tokens = 1024;
  int chunk_length = 200;
  std::optional<bool> normalize;
  std::optional<double> timeout;  // seconds
  std::vector<ReferenceClip> references;
  bool stream = true;
  bool special_tokens = false;
  int sample_rate = 0;  // Hz; 0: 24000 for pcm, whose listeners expect it, else the model's
};

Schema<OpenAiSpeech> openai_speech_schema(const ServerConfig& config);

// Whether requests may name that model: ours, or one of OpenAI's, so that clients work unchanged.
bool is_model_name(const Services& services, const std::string& name);
// Each throws BodyError: what the schema cannot say. speech_request looks into the folder of voices.
SpeechRequest speech_request(const Services& services, const OpenAiSpeech& body);
AnswerOptions answer_options(const OpenAiSpeech& body);

// Errors of the engine in terms of this API: to be called in a handler of `error`, which it throws again.
[[noreturn]] void rethrow_for_openai(const Error& error, const std::string& voice);

}  // namespace shoal::server
