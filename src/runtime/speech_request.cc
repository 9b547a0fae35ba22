#include "runtime/speech_request.h"

#include "text/sentences.h"
#include "text/utf8.h"

namespace shoal::runtime {

SpeechRequest default_request(const SpeechModel& model) {
  SpeechRequest request;
  const GenerationDefaults& defaults = model.defaults();
  dual_ar::Sampling& sampling = request.sampling;
  sampling = dual_ar::Sampling::defaults(model.language_model().config().family);
  sampling.temperature = defaults.temperature.value_or(sampling.temperature);
  sampling.top_p = defaults.top_p.value_or(sampling.top_p);
  sampling.repetition_penalty = defaults.repetition_penalty.value_or(sampling.repetition_penalty);
  request.normalise = defaults.normalise;
  return request;
}

void validate(const SpeechRequest& request) {
  if (request.text.size() > static_cast<size_t>(kMaxTextBytes)) {
    fail(ErrorCode::too_large, "text: ", request.text.size(), " bytes, at most ", kMaxTextBytes,
         " are accepted");
  }
  text::require_utf8(request.text);
  if (!text::is_speakable(request.text)) {
    fail(ErrorCode::invalid_argument, "text: expected at least one letter or digit, got ",
         request.text.empty() ? "nothing" : "only spaces and punctuation");
  }
  if (request.chunk_length != 0 && (request.chunk_length < 50 || request.chunk_length > 1000)) {
    fail(ErrorCode::invalid_argument, "chunk_length: expected 0 (never split) or 50 to 1000 bytes, got ",
         request.chunk_length);
  }
  if (request.max_new_tokens < 0 || request.max_new_tokens > (int64_t{1} << 20)) {
    fail(ErrorCode::invalid_argument,
         "max_new_tokens: expected 0 (up to the context limit) or more frames, got ", request.max_new_tokens);
  }
  dual_ar::check_sampling(request.sampling);
}

}  // namespace shoal::runtime
