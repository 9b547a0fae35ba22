// What the routes of the open inference protocol are asked: a text as a tensor or a field, and how to speak
// it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/routes/openai_speech.h"

namespace shoal::server {

// Tensors of a model: BYTES [1], BYTES [n] and their words, FP32 [samples], BYTES [1], INT32 [1].
constexpr const char* kTextInput = "text_input";
constexpr const char* kReferenceAudio = "reference_audio";
constexpr const char* kReferenceText = "reference_text";
enum InferOutputKind { kAudio, kAudioFile, kSampleRate, kInferOutputs };
constexpr std::array<const char*, kInferOutputs> kOutputNames = {"audio", "audio_file", "sample_rate"};

struct InferSpeech : OpenAiSpeech {
  struct Output {
    bool wanted = false;
    bool binary = false;  // as bytes behind the JSON
  };

  InferSpeech() { response_format = "wav"; }

  std::string id;
  std::array<Output, kInferOutputs> outputs;
  bool binary_data_output = false;
  int64_t timeout_us = 0;  // 0: the server's
};

// The parameters of a request.
Schema<InferSpeech> infer_parameters(const ServerConfig& config);
// The body of generate and generate_stream: text_input, id, and parameters beside them or in an object of
// that name.
Schema<InferSpeech> generate_schema(const ServerConfig& config);

// Each throws BodyError. The body of infer has its own content type where bytes follow the JSON.
InferSpeech read_infer(const Request& request, const Schema<InferSpeech>& parameters, int max_references);
InferSpeech read_generate(const Request& request, const Schema<InferSpeech>& schema);

}  // namespace shoal::server
