// The body of POST /v1/tts: Fish-Speech's ServeTTSRequest, and the fields of its cloud
// API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/body/schema.h"
#include "server/routes/speech_answer.h"

namespace shoal::server {

struct FishRequest {
  std::string model;  // empty: the first
  std::string text;
  int chunk_length = 200;
  std::string format = "wav", latency = "normal", use_memory_cache = "off";
  std::vector<ReferenceClip> references;
  std::vector<std::string> clips, clip_words;  // reference_audio, reference_text: references, too
  std::string reference_id;                    // takes precedence over references
  std::optional<uint64_t> seed;
  // Official clients send true unasked, and the official server ignores it: true is the model's own choice
  // (S1-mini: the text as it stands), only false is an order.
  bool normalize = true;
  bool streaming = false;
  int64_t max_new_tokens = 1024;
  float top_p = 0.8f, repetition_penalty = 1.1f, temperature = 0.8f;

  int sample_rate = 0;            // Hz; 0: the model's
  int mp3_bitrate = 0;            // kbit/s; 0: ours
  int opus_bitrate = 0;           // kbit/s; 0 or -1000: ours
  std::optional<double> timeout;  // seconds
  std::optional<int> top_k;
  bool special_tokens = false;
  std::vector<std::string> unused;  // fields of the cloud API that no model has, "name: why"
  double speed = 1;
  std::optional<double> prosody_speed;  // the cloud API's, instead
  double volume_db = 0;
  std::string language;  // of models that speak phonemes
};

Schema<FishRequest> fish_request_schema(const ServerConfig& config);
// Looks into the folder of voices.
SpeechRequest speech_request(const Services& services, Engine& engine, const FishRequest& body);
// Throws BodyError(invalid_argument): a rate or bitrate that the format cannot carry.
AnswerOptions answer_options(const FishRequest& body);

}  // namespace shoal::server
