// A request made ready for the models: settings resolved, text split, references encoded.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "models/dual_ar/generation.h"
#include "runtime/engine/voice_reference.h"
#include "runtime/families/language/speech_model.h"
#include "shoal/seeds.h"
#include "shoal/speech_request.h"
#include "text/prompt.h"
#include "text/tokenizer.h"

namespace shoal::runtime {

struct SpeechPlan {
  std::vector<std::string> utterances;     // pieces of the text, in order
  std::vector<VoiceReference> references;  // none: the model's own choice of voice
  dual_ar::Sampling sampling;
  int64_t max_new_tokens = 1024;  // frames of one utterance; 0: up to the context limit
  text::SpecialTokens special_tokens = text::SpecialTokens::recognise;
};

// Checks every field that needs no loaded model; returns a warning for each field without effect. Throws
// Error naming the field: invalid_argument or too_large; unsupported for fields that only other models have.
std::vector<std::string> validate(const SpeechRequest& request);

// The warning for a validated text whose letters mostly belong to no language that the model has learned
// (GenerationDefaults::languages): such a text becomes noise. In a strict request it throws
// Error(unsupported) instead.
std::optional<std::string> remark_on_language(const SpeechRequest& request, const SpeechModel& model);

// The warning for a chunk_length that is more than the model speaks in one piece: pieces are shorter then.
std::optional<std::string> remark_on_chunk_length(const SpeechRequest& request, const SpeechModel& model);

// The request's values over the model's own (generation_config.json over the family's), and the split text.
// S1: sentences gathered up to chunk_length bytes, or to as many as the model speaks in one piece; S2:
// speaker turns grouped by its own rule, or sentences if there are no speaker tags. `seed` is used when the
// request has none. The request has been validated.
SpeechPlan plan_speech(const SpeechRequest& request, const SpeechModel& model,
                       std::vector<VoiceReference> references, uint64_t seed);

// The prompt of one utterance. `spoken`: the utterances before it. Without references the first of them
// stands in as the reference, so that a long text keeps one voice (prompt.md 3.3); S2 puts them into its
// history instead, of which it leaves out the later part where the whole would not fit into `room` columns.
// Throws Error(too_large) when it leaves no room for speech.
text::PromptColumns build_prompt(const SpeechPlan& plan, const SpeechModel& model,
                                 std::span<const VoiceReference> spoken, std::string_view text,
                                 int64_t room = std::numeric_limits<int64_t>::max());

// Identifies the voice at the start of the prompt: a hash of the references' codes and words, 0 for none.
uint64_t voice_of_prompt(const SpeechPlan& plan, std::span<const VoiceReference> spoken);

}  // namespace shoal::runtime
