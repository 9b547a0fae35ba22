// Whose turn it is: the tags "<|speaker:0|>" in a dialogue and in transcripts (S2; prompt.md 6).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal::text {

struct SpeakerTag {
  size_t begin = 0, end = 0;  // of "<|speaker:i|>"
  int speaker = 0;            // i; numbers beyond int read as its largest
};

// The next tag at or after `from`, with i in decimal digits. A tag that is not whole is text. Linear time.
std::optional<SpeakerTag> find_speaker_tag(std::string_view text, size_t from = 0);

// The speakers of a text, each once, in the order in which they first speak.
std::vector<int> speakers_of(std::string_view text);

}  // namespace shoal::text
