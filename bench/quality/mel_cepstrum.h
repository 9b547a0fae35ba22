// Mel-cepstral distortion: how different two sounds of the same words are, whatever their pace.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace shoal::quality {

inline constexpr int kCepstra = 13;  // c1 to c13; c0, the loudness, is left out
using Cepstrum = std::array<double, kCepstra>;

// One for every 12 ms, as mel_cepstra in voice/evaluation/measures.py makes them: Hann windows of 48 ms, 80
// mel bands up to half the rate. None of a sound shorter than half a window.
std::vector<Cepstrum> mel_cepstra(std::span<const float> samples, int sample_rate_hz);

// MCD in dB: 10 / ln 10 * sqrt(2 * sum over c1..c13 of squared differences) (Kubichek 1993), the mean along
// the alignment of least sum (dynamic time warping, Sakoe and Chiba 1978: steps in one sound, the other or
// both, of equal weight). Absent if either is empty.
std::optional<double> mel_cepstral_distortion(std::span<const Cepstrum> a, std::span<const Cepstrum> b);

}  // namespace shoal::quality
