// The sound of a request as a file of the run's folder.
#pragma once

#include <string>

#include "bench/load/request_record.h"

namespace shoal::load {

// A WAV file of the samples as they came, whatever carried them.
std::string wav_of(const RequestRecord& record);

// Writes it to `folder`/audio/LEVEL-INDEX.wav, of a record that has samples. Returns the path below `folder`.
// Throws Error(io).
std::string keep_sound(const std::string& folder, size_t level, const RequestRecord& record);

}  // namespace shoal::load
