// Resampling of reference audio, equal to the resampler that the codec was trained with.
#pragma once

#include <span>
#include <vector>

namespace shoal::audio {

// Windowed-sinc resampling as torchaudio's resample does it (Hann window, 6 zero crossings, roll-off 0.99;
// kernel in float64 rounded to float32, sums in float64). Returns ceil(in.size() * to_hz / from_hz) samples;
// equal rates return a copy. Any pair of rates works: memory for the kernel stays below 100 bytes per Hz of
// the larger rate. Throws Error: invalid_argument (a rate outside 1 .. 1,000,000), too_large (over 2^31
// output samples).
std::vector<float> resample(std::span<const float> in, int from_hz, int to_hz);

}  // namespace shoal::audio
