// Kokoro against what the official code computed, for any folder in the fixtures' form (config.json,
// kokoro-v1_0.pth, manifest.json, goldens/CASE.safetensors). In links, because the phase of a waveform is
// ill-conditioned. What the form allows to be missing is counted as absent. Failures are GoogleTest failures
// that name the case and the golden.
#pragma once

#include <string>

namespace shoal::parity {

// The manifest's phonemes to ids, and, where the folder holds the voice, its style for so many phonemes.
void check_kokoro_inputs(const std::string& dir);
// Ids to durations, which are equal, and to every stage up to the decoder's features.
void check_kokoro_stages(const std::string& dir);
// The golden pitch to the source and its spectrum.
void check_kokoro_source(const std::string& dir);
// Golden text, pitch, energy and spectrum to samples.
void check_kokoro_generator(const std::string& dir);
// Ids to samples.
void check_kokoro_speech(const std::string& dir);
// bfloat16 against f32: every stage of the decoder and the generator, and the spectrum of the sound.
void check_kokoro_bf16(const std::string& dir);

}  // namespace shoal::parity
