// Shared by the tests of the harmonic source on every device.
#pragma once

#include "ops/harmonic_source.h"
#include "ops/ref/sequence.h"
#include "ops/sequence_testing.h"

namespace shoal::ops::source_testing {

// A voice with weights of the size that a trained one has.
struct Voice {
  std::vector<float> weights = random_values(kHarmonics, 5, 0.5f), bias = {0.03f};
  int64_t samples_per_row = 300;

  HarmonicSource source() {
    return {.weights = view_of(weights, {kHarmonics}),
            .bias = view_of(bias, {1}),
            .samples_per_row = samples_per_row};
  }
  ref::Source oracle() const { return {wide(weights), bias[0], 24000, samples_per_row}; }
};

// A melody: voiced, silent (0 Hz), barely voiced, negative and very high rows.
inline std::vector<float> melody(int32_t rows) {
  std::vector<float> f0 = random_values(rows, static_cast<unsigned>(rows), 60);
  for (size_t i = 0; i < f0.size(); ++i) f0[i] += i % 7 == 5 ? -150.0f : 180.0f;
  for (size_t i = 3; i < f0.size(); i += 11) f0[i] = 0;
  for (size_t i = 4; i < f0.size(); i += 13) f0[i] = 10;
  for (size_t i = 6; i < f0.size(); i += 17) f0[i] = 13000;
  return f0;
}

inline ref::Values drawn(uint64_t seed, int64_t samples) {
  ref::Values noise;
  for (int64_t t = 0; t < samples; ++t)
    for (int64_t h = 0; h < kHarmonics; ++h) noise.push_back(ref::source_noise(seed, t, h));
  return noise;
}

// A turn is known to 2^-24 and a quarter of its sine's error, a draw to 4e-6 (near 1, -2 log u of 23 bits is
// small); each times the sum of the weights, then the roundings of the sum.
inline ref::Values bounds(const Voice& voice, size_t count) {
  double weights = 0;
  for (const float w : voice.weights) weights += std::abs(w);
  return ref::Values(count, weights * (0.1 * 6e-7 + 4e-6 / 30) + 32 * kUnit);
}

}  // namespace shoal::ops::source_testing
