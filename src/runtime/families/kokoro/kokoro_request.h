// Interprets a request for a Kokoro model: pure functions, before anything is pronounced.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/families/kokoro/kokoro_model.h"
#include "shoal/engine.h"
#include "shoal/speech_request.h"
#include "text/phonemes/front_end.h"
#include "text/phonemes/markup.h"

namespace shoal::runtime {

// The parts of a request that these models understand.
ModelTraits kokoro_traits();

// Checks every field that needs no loaded model; returns a warning for each field without effect. Throws
// Error: invalid_argument or too_large naming the field; unsupported for fields that only other models have.
std::vector<std::string> validate_kokoro(const SpeechRequest& request);

struct Speaker {
  kokoro::Voice voice;
  // Of the text; none if phonemes are given.
  std::optional<phonemes::Language> language;
  std::vector<std::string> warnings;
};

// The voice and the language of a request: its own, else the configuration's, else one from the other (a
// voice speaks the language of its first letter; a language has a published voice), else American English.
// Throws Error: invalid_argument (language, voice; a voice whose name gives no language), not_found (voice),
// unsupported (text in a language without a front end).
Speaker choose_speaker(const SpeechRequest& request, const EngineConfig& config, const KokoroModel& model);

// The lines of a validated request, at least one; lines of a text are short. Throws Error(invalid_argument)
// before the request is queued: invalid markup; phonemes that are only white space.
std::vector<phonemes::Line> lines_of(const SpeechRequest& request);

// How texts are cut for this model.
phonemes::ChunkRules chunk_rules(const EngineConfig& config, const KokoroModel& model);

}  // namespace shoal::runtime
