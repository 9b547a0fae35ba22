// What a caller asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/dual_ar/generation.h"
#include "runtime/references.h"
#include "runtime/speech_model.h"
#include "text/tokenizer.h"

namespace shoal::runtime {

struct SpeechRequest {
  std::string text;                        // UTF-8
  std::vector<VoiceReference> references;  // none: the model's own choice of voice
  dual_ar::Sampling sampling;
  int64_t max_new_tokens = 1024;  // frames of one utterance; 0: up to the context limit (spec serving 3.1)
  int chunk_length = 200;  // longest utterance, UTF-8 bytes, that a long text is split into; 0: never split
  bool normalise = false;  // speak English numbers, dates, money, units as words
  text::SpecialTokens special_tokens = text::SpecialTokens::recognise;
};

constexpr int64_t kMaxTextBytes = 256 << 10;

// A request with the model's own defaults: its family's sampling, then what its generation_config.json says.
SpeechRequest default_request(const SpeechModel& model);

// Checks every field that can be checked without a model. Throws Error(invalid_argument or too_large) naming
// the field.
void validate(const SpeechRequest& request);

}  // namespace shoal::runtime
