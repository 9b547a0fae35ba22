// Answers of the open inference protocol: sound as tensors.
#pragma once

#include <string>
#include <vector>

#include "server/routes/infer_request.h"

namespace shoal::server {

struct InferSound {
  std::string model;           // its name
  std::vector<float> samples;  // at sample_rate_hz
  SpeechSummary summary;
};

struct InferAnswer {
  std::string body;
  size_t json_bytes = 0;  // at its beginning, where bytes of tensors follow; 0: it is all JSON
};

// Of AnswerOptions: the format of audio_file, and the rate of all.
AnswerOptions infer_options(const InferSpeech& asked);
// The rate of the file.
int infer_rate_hz(const InferSpeech& asked, int model_rate_hz);
// Bytes of memory at most that the body takes.
size_t most_infer_bytes(const InferSpeech& asked, size_t samples);
// Resamples and encodes: for a worker.
InferAnswer infer_answer(const InferSpeech& asked, const InferSound& sound);

// {"id", "model_name", "model_version"}: how each answer begins.
Value::Object infer_head(const std::string& id, const std::string& model);
// What a model takes and gives: of the metadata, and as Triton configures it.
Value model_metadata(const std::string& model);
Value model_configuration(const std::string& model);

}  // namespace shoal::server
