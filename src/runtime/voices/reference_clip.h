// What makes a recording and its words usable as a reference.
#pragma once

#include <cstdint>
#include <string_view>

#include "audio/clip.h"
#include "shoal/stored_voices.h"

namespace shoal::runtime {

// The longest and shortest clip that can serve as a reference. The codec needs 21.5 columns of prompt per
// second, and the official model card recommends at most 30 s; other clips are refused before any work.
struct ReferenceLimits {
  double max_seconds = 120;
  double min_seconds = 0.2;
  int64_t max_transcript_bytes = kMaxTranscriptBytes;
};

// `name` starts the messages.

// Throws Error: invalid_argument (only spaces, or not UTF-8), too_large.
void check_transcript(std::string_view text, std::string_view name, const ReferenceLimits& limits = {});

// Throws Error: invalid_argument (silence, too short), too_large (too long).
void check_sound(const audio::Clip& clip, std::string_view name, const ReferenceLimits& limits = {});

// Both.
void check_reference(const audio::Clip& clip, std::string_view text, std::string_view name,
                     const ReferenceLimits& limits = {});

}  // namespace shoal::runtime
