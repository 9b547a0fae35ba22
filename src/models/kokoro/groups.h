// Which utterances of a batch are made into sound together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kokoro {

// The end of the group that begins with utterance `first`: that one alone, or several of `most` frames at
// most. Groups are of about equal size: each takes its share of what is left, where there are as many as
// these frames would need if they could be cut anywhere.   frames: of each utterance, above 0.
size_t end_of_group(std::span<const int32_t> frames, size_t first, int64_t most);

}  // namespace shoal::kokoro
