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
  std::string model;  // empty: the model of the request's headers, otherwise the first
  std::string text;
  int chunk_length = 200;
  std::string format = "wav", latency = "normal", use_memory_cache = "off";
  std::vector<ReferenceClip> references;
  std::vector<std::string> clips, clip_words;  // reference_audio, reference_text: references, too
  std::string reference_id;                    // takes precedence over references
  std::vector<std::string> reference_ids;      // the same, one for each speaker
  std::optional<uint64_t> seed;
  // Official clients always send true, and the official server ignores it: true means the model's default
  // (S1-mini: the text unchanged), only false is an instruction.
  bool normalize = true;
  bool streaming = false;
  bool ssml = false;     // the text is SSML
  bool bare_wav = true;  // a streamed wav has no file header; not a field
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

// The defaults for requests whose body does not choose. Clients of the hosted service, recognised by the
// headers `model` or `developer-id`, never ask for a stream and write the answer to a file: they get mp3,
// streamed, or a wav with its header, as from that service. Others: like the official server.
FishRequest fish_defaults(const Request& request);
// The model of the body, else of the header `model`, else the first. A name of the hosted service in the
// header (s1, s2-pro, speech-1.6, ...) is the first model of that family, else the first that follows clips,
// else the first. Throws BodyError(not_found).
const ServedModel& model_of(const Models& models, const Request& request, const FishRequest& body);

// Looks into the folder of voices.
SpeechRequest speech_request(const Services& services, Engine& engine, const FishRequest& body);
// Throws BodyError(invalid_argument): a rate or bitrate that the format cannot carry.
AnswerOptions answer_options(const FishRequest& body);

}  // namespace shoal::server
