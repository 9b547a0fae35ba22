#include "tests/parity/spectral_distance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "base/error.h"

namespace shoal::parity {
namespace {

constexpr size_t kWindow = 512, kHop = 120, kBins = kWindow / 2 + 1, kBands = 80;
constexpr double kRateHz = 24000, kFloor = 1e-6;  // of power

using Bands = std::array<double, kBands>;

double mel(double hz) { return 2595 * std::log10(1 + hz / 700); }

// Each bin's power goes to the two bands around it, by nearness.
Bands bands_of(const std::array<double, kBins>& power) {
  Bands bands{};
  const double per_band = mel(kRateHz / 2) / (kBands - 1);
  for (size_t bin = 0; bin < kBins; ++bin) {
    const double at = mel(static_cast<double>(bin) * kRateHz / kWindow) / per_band;
    const size_t below = std::min(static_cast<size_t>(at), kBands - 2);
    const double share = at - static_cast<double>(below);
    bands[below] += power[bin] * (1 - share);
    bands[below + 1] += power[bin] * share;
  }
  return bands;
}

std::vector<Bands> spectrogram(std::span<const float> sound) {
  std::vector<std::complex<double>> turns(kWindow);
  for (size_t i = 0; i < kWindow; ++i)
    turns[i] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / kWindow);
  std::vector<Bands> frames;
  for (size_t begin = 0; begin + kWindow <= sound.size(); begin += kHop) {
    std::array<double, kBins> power{};
    for (size_t bin = 0; bin < kBins; ++bin) {
      std::complex<double> sum = 0;
      for (size_t i = 0; i < kWindow; ++i) {
        const double hann = 0.5 - 0.5 * turns[i].real();
        sum += turns[bin * i % kWindow] * (hann * static_cast<double>(sound[begin + i]));
      }
      power[bin] = std::norm(sum);
    }
    frames.push_back(bands_of(power));
  }
  return frames;
}

}  // namespace

double spectral_distance_db(std::span<const float> sound, std::span<const float> golden) {
  CHECK(sound.size() == golden.size() && golden.size() >= kWindow, sound.size(), ", ", golden.size());
  const std::vector<Bands> got = spectrogram(sound), wanted = spectrogram(golden);
  double loudest = 0;
  for (const Bands& bands : wanted) loudest = std::max(loudest, std::ranges::max(bands));
  const double floor = loudest * kFloor;
  double distance = 0;
  for (size_t frame = 0; frame < wanted.size(); ++frame) {
    double squares = 0;
    for (size_t band = 0; band < kBands; ++band) {
      const double db = 10 * std::log10((got[frame][band] + floor) / (wanted[frame][band] + floor));
      squares += db * db;
    }
    distance += std::sqrt(squares / kBands);
  }
  return distance / static_cast<double>(wanted.size());
}

}  // namespace shoal::parity
