// Callbacks on top of a Speech that is otherwise pulled.
#pragma once

#include "shoal/speech.h"

namespace shoal::runtime {

// Calls the callbacks from the engine's threads as samples arrive and at the end.
Speech push_to(Speech speech, SpeechCallbacks callbacks);

}  // namespace shoal::runtime
