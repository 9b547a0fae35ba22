// Reference clips: the sound and words of a voice, as codes.
#pragma once

#include <string>
#include <vector>

#include "audio/clip.h"
#include "ops/context.h"
#include "runtime/speech_model.h"

namespace shoal::runtime {

// A clip in the model's codes, ready to stand in a prompt.
struct VoiceReference {
  std::string text;            // its transcript, UTF-8, used verbatim
  std::vector<int32_t> codes;  // [frames, num_codebooks]
  int64_t frames = 0;
};

// Longest and shortest clip that can serve as a reference. The codec costs 21.5 columns of prompt a second,
// and 30 s is what the official model card recommends at most; the rest is refused before any work is done on
// it.
struct ReferenceLimits {
  double max_seconds = 120;
  double min_seconds = 0.2;
};

// Throws Error(invalid_argument): silence, too short, empty transcript; Error(too_large): too long. `name`
// starts the messages.
void check_reference(const audio::Clip& clip, std::string_view text, std::string_view name,
                     const ReferenceLimits& limits = {});

// Checks, resamples to the codec's rate (spec dac 8) and encodes.
VoiceReference encode_reference(const SpeechModel& model, const audio::Clip& clip, std::string text,
                                std::string_view name, ops::Context& ctx, const ReferenceLimits& limits = {});

// The references of voice `id` in a folder of the official layout: DIR/ID/*.wav|flac|mp3|ogg|opus|aiff with a
// .lab transcript each, in order of name. Ids are letters, digits, '-', '_' and ' ' (spec serving 5), never a
// path.
struct NamedClip {
  std::string audio_path;
  std::string transcript;
};
std::vector<NamedClip> find_voice(const std::string& references_dir, std::string_view id);
// Ids in DIR that have at least one clip with a transcript, sorted. A missing folder has none.
std::vector<std::string> list_voices(const std::string& references_dir);

}  // namespace shoal::runtime
