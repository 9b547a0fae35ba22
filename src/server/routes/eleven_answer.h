// Sound with the times of its characters, as ElevenLabs' API tells them.
#pragma once

#include "server/routes/eleven_characters.h"
#include "server/routes/speech_answer.h"

namespace shoal::server {

// {"characters", "character_start_times_seconds", "character_end_times_seconds"}; null without a character.
Value alignment_value(const TimedCharacters& times);

// {"audio_base64", "alignment", "normalized_alignment"}: one line for each piece or, when not streaming, one
// object. The alignments, of the text and of the words as they are spoken, are null of models that know no
// times.
Task<> answer_with_characters(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                              AnswerOptions options);

}  // namespace shoal::server
