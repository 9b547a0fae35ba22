// Which utterances of a batch are made into sound together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kokoro {

// The end of the group that begins with utterance `first`: a single utterance, or several with at most `most`
// frames in all. Groups have about equal size: with n the number of groups that the remaining frames would
// need if they could be cut anywhere, each takes 1/n of them. frames: of each utterance, above 0.
size_t end_of_group(std::span<const int32_t> frames, size_t first, int64_t most);

}  // namespace shoal::kokoro
