// The body of POST /v1/audio/speech: the fields of OpenAI's API, those of Kokoro-FastAPI (0.8), and ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/body/schema.h"
#include "server/routes/speech_answer.h"

namespace shoal::server {

struct OpenAiSpeech {
  std::string model, input;
  std::optional<std::string> voice;
  std::string response_format = "mp3", stream_format = "audio";
  double speed = 1;
  // Kokoro-FastAPI's.
  std::string lang_code;
  float volume_multiplier = 1;
  std::optional<bool> normalization;  // normalization_options.normalize

  std::optional<uint64_t> seed;
  std::optional<float> temperature, top_p, repetition_penalty;
  std::optional<int> top_k;
  int64_t max_new_tokens = 1024;
  int chunk_length = 200;
  std::optional<bool> normalize;
  std::optional<double> timeout;  // seconds
  std::vector<ReferenceClip> references;
  std::vector<SpeakerVoice> voices;
  bool stream = true;
  bool special_tokens = false;
  bool strict_phonemes = false;
  std::vector<std::string> unused;  // fields of these APIs that no model has, "name: why"
  bool ssml = false;                // the input is SSML
  bool return_timestamps = true;    // of /dev/captioned_speech
  int sample_rate = 0;              // Hz; 0: 24000 for pcm, whose listeners expect it, else the model's
};

Schema<OpenAiSpeech> openai_speech_schema(const ServerConfig& config);
// The fields of these names, for APIs that call them so, too.
std::vector<Field<OpenAiSpeech>> openai_speech_fields(const ServerConfig& config,
                                                      std::initializer_list<std::string_view> names);
// The body of /dev/captioned_speech: the same except for the format of the answer.
Schema<OpenAiSpeech> captioned_speech_schema(const ServerConfig& config);

// The model that is asked for. Clients of Kokoro-FastAPI may leave it out, where a Kokoro model is loaded.
// Throws BodyError.
const ServedModel& model_of(const Models& models, const OpenAiSpeech& body);
// Each throws BodyError for errors that the schema cannot express. speech_request reads the folder of voices.
SpeechRequest speech_request(const Services& services, Engine& engine, const OpenAiSpeech& body);
AnswerOptions answer_options(const OpenAiSpeech& body);
// Reads the text as SSML if the body says so (read_ssml).
void take_ssml(Engine& engine, const OpenAiSpeech& body, SpeechRequest& request, AnswerOptions& options);

// Errors of the engine in terms of this API: to be called in a handler of `error`, which it throws again.
[[noreturn]] void rethrow_for_openai(const Error& error, const std::string& voice);

}  // namespace shoal::server
