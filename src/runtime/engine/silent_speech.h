// The answer to a text that cannot be spoken.
#pragma once

#include "runtime/engine/ledger.h"
#include "shoal/speech.h"

namespace shoal::runtime {

// The length of the silence: long enough for every player and encoder, too short to seem a fault.
constexpr double kSilenceS = 0.2;
constexpr const char* kNothingToSay =
    "text: there is nothing in it that can be spoken; 0.2 seconds of silence stand for it";

// Adds the silence and the warning to a state that has no sound yet.
void append_silence(SpeechState& state);

// A speech of only this silence, already ended. It is counted like every request. Throws the Errors of
// Ledger::enter.
Speech speak_silence(Ledger& ledger, uint64_t client, const QueueEntry& entry,
                     std::shared_ptr<SpeechState> state);

}  // namespace shoal::runtime
