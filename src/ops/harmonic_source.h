// The excitation of a voice: harmonics of its pitch and noise (NSF source, spec kokoro 6.1).
#pragma once

#include <span>

#include "ops/context.h"
#include "ops/segments.h"

namespace shoal::ops {

constexpr int64_t kHarmonics = 9;

struct HarmonicSource {
  TensorView weights;  // f32 [kHarmonics]
  TensorView bias;     // f32 [1]
  int64_t sample_rate_hz = 24000;
  int64_t samples_per_row = 300;  // samples a pitch value stands for; even
  float amplitude = 0.1f;         // of the sines
  float noise = 0.003f;           // standard deviation beside a voice; without one a third of the amplitude
  float voiced_above_hz = 10;
};

// What the noise is made of: values given for each sample and harmonic, or normal draws that depend on
// nothing but (the segment's seed, sample of the segment, harmonic).
struct SourceNoise {
  TensorView given = {};                 // f32 [samples, kHarmonics]
  std::span<const uint64_t> seeds = {};  // [segments]; without `given`
};

// f0: f32 [total_rows] in Hz, may be negative; segments: those of f0. out: f32 [total_rows *
// samples_per_row]; gaps become zeros. Phases are carried in f64 (spec kokoro 6.1, last but one point). The
// same for a segment in every batch.
void harmonic_source(Context& ctx, const HarmonicSource& source, TensorView f0, const Segments& segments,
                     const SourceNoise& noise, TensorView out);

}  // namespace shoal::ops
