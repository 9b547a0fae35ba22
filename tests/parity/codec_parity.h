// The codec against what the official code computed, for any folder in the fixtures' form (codec.pth,
// codec_config.json, dac_goldens.safetensors). What the form allows to be missing is counted as absent.
// Failures are GoogleTest failures that name the golden.
#pragma once

#include <string>

namespace shoal::parity {

// Every stage from codes to wave, a batch of two clips, and the wave of encoded codes.
void check_codec_decoding(const std::string& dir);
// Every stage from wave to codes, also for a clip longer than the encoder's window.
void check_codec_encoding(const std::string& dir);
// Matrices in bf16: no farther from the f32 wave than the reference's own bf16 run is.
void check_codec_bf16(const std::string& dir);
// Decoding in pieces gives the very samples of decoding at once.
void check_codec_streaming(const std::string& dir);

}  // namespace shoal::parity
