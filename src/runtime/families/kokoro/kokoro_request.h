// What a request means to a Kokoro model: pure decisions, before anything is pronounced.
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

// What these models understand of a request.
ModelTraits kokoro_traits();

// Every field that can be checked without a model; returns remarks about those that have no effect. Throws
// Error: invalid_argument or too_large naming the field; unsupported for what only other models have.
std::vector<std::string> validate_kokoro(const SpeechRequest& request);

struct Speaker {
  kokoro::Voice voice;
  // Of the text; none where phonemes are given.
  std::optional<phonemes::Language> language;
  std::vector<std::string> warnings;
};

// The voice and the language of a request: its own, else the configuration's, else what follows from one
// another (a voice speaks the language of its first letter; a language has a published voice; American
// English). Throws Error: invalid_argument (language, voice; a voice whose name says no language), not_found
// (voice), unsupported (text in a language without a front end).
Speaker choose_speaker(const SpeechRequest& request, const EngineConfig& config, const KokoroModel& model);

// The lines of a validated request, at least one; those of a text are short. Throws Error(invalid_argument):
// markup that makes no sense, before the request is queued; phonemes that are only white space.
std::vector<phonemes::Line> lines_of(const SpeechRequest& request);

// How texts are cut for this model.
phonemes::ChunkRules chunk_rules(const EngineConfig& config, const KokoroModel& model);

}  // namespace shoal::runtime
