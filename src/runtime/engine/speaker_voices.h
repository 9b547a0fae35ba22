// Several speakers in one text: the rules that need no model, for every family.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/engine/voice_reference.h"
#include "shoal/engine.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// Checks SpeechRequest::voices and the speakers of clips; nothing to check without them. Throws Error of
// `voices` or `references`: unsupported (a model that reads no speakers), invalid_argument (a voice or clips
// beside them, a number twice or out of range, a speaker of the text without a voice).
void check_speakers(const SpeechRequest& request, const ModelTraits& traits);

// What is odd about a text of several speakers, spoken as the official code does: words before the first tag
// are left out, and speakers without a reference get a voice of the model's choice. Absent: nothing.
// For models that read speakers, after check_speakers.
std::optional<std::string> remark_on_speakers(const SpeechRequest& request,
                                              std::span<const VoiceReference> references);

}  // namespace shoal::runtime
