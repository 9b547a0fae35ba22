// The rules for the text of a request, for every model.
#pragma once

#include <string>

#include "shoal/speech_request.h"

namespace shoal::runtime {

// Throws Error: too_large (over kMaxTextBytes), invalid_argument (not UTF-8, only white space).
void validate_text(const std::string& text);

// Whether a validated text has no letter and no digit, as "..." and emoji: a model would babble, so it is
// answered with silence (silent_speech.h).
bool has_nothing_to_say(const SpeechRequest& request);

}  // namespace shoal::runtime
