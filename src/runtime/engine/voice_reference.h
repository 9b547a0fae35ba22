// Reference clips: the sound and words of a voice, as codes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shoal::runtime {

// A clip in the model's codes, ready for a prompt; or a spoken utterance.
struct VoiceReference {
  std::string text;            // its transcript, UTF-8, used verbatim
  std::vector<int32_t> codes;  // [frames, num_codebooks]
  int64_t frames = 0;
  std::optional<int> speaker = {};  // as ReferenceClip::speaker
};

}  // namespace shoal::runtime
