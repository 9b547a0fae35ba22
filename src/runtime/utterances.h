// How a request becomes utterances, and an utterance a prompt. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/dual_ar/generation.h"
#include "runtime/speech_request.h"
#include "text/prompt.h"

namespace shoal::runtime {

// Normalises (when asked) and splits the text. S1: sentences gathered up to chunk_length bytes; S2: speaker
// turns grouped by its own rule, or sentences when there are no speaker tags.
std::vector<std::string> plan_utterances(const SpeechRequest& request, const SpeechModel& model);

// The prompt of one utterance. `spoken`: the utterances before it. Without references the first of them
// stands in as the reference, so that a long text keeps one voice (prompt.md 3.3); S2 puts them into its
// history instead.
text::PromptColumns build_prompt(const SpeechRequest& request, const SpeechModel& model,
                                 std::span<const VoiceReference> spoken, std::string_view text);

// Copies the frames that have become certain since the last call from the generation state to `spoken`.
void append_speech(const dual_ar::Utterance& utterance, VoiceReference& spoken);

}  // namespace shoal::runtime
