// The answer to a text with nothing to say.
#pragma once

#include "runtime/engine/ledger.h"
#include "shoal/speech.h"

namespace shoal::runtime {

// What is heard then: long enough for every player and encoder, too short to be taken for a fault.
constexpr double kSilenceS = 0.2;
constexpr const char* kNothingToSay =
    "text: there is nothing in it that can be spoken; 0.2 seconds of silence stand for it";

// Puts the silence and the remark into a state that has no sound yet.
void append_silence(SpeechState& state);

// A speech of nothing else, which has ended: it is counted as every request. Throws as Ledger::enter does.
Speech speak_silence(Ledger& ledger, uint64_t client, const QueueEntry& entry,
                     std::shared_ptr<SpeechState> state);

}  // namespace shoal::runtime
