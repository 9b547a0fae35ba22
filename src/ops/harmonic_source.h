// The excitation of a voice: harmonics of its pitch and noise (NSF source, kokoro/MODEL.md, Samples).
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
  int64_t samples_per_row = 300;  // samples per pitch value; even
  float amplitude = 0.1f;         // of the sines
  float noise = 0.003f;           // standard deviation beside a voice; without one a third of the amplitude
  float voiced_above_hz = 10;
};

// What the noise is made of: values given for each sample and harmonic, or normal draws that depend on
// nothing but (the segment's seed, sample t of the segment, harmonic h).
//
// A draw: four words = philox4x32(seed, {16 (t / 64) + t % 16, h, 0, 1}) (base/philox.h; no draw of a token
// has a 1 there), the same block for t, t + 16, t + 32, t + 48 of 64 samples, which use the pair of words
// (t / 16) % 4 / 2. With u, v = uniform_open of the pair the draw is sqrt(-2 log u) cos(2 pi v) where
// (t / 16) % 4 is even, and with sin where it is odd (Box and Muller, 1958). At most 5.8 in magnitude.
struct SourceNoise {
  TensorView given = {};                 // f32 [samples, kHarmonics]
  std::span<const uint64_t> seeds = {};  // [segments]; without `given`
  TensorView seed_table = {};            // the same where kernels read them: i64 [segments]; not for the CPU
};

// f0: f32 [total_rows] in Hz, may be negative; segments: those of f0; out: f32 [total_rows *
// samples_per_row]; gaps become zeros. All dense. Phases are accumulated in f64 from row to row
// (kokoro/MODEL.md, Samples, last but one point) and within one to 2^-32 of a turn. A pitch that is not
// finite is unvoiced or adds no phase. The same for a segment in every batch, bit for bit.
void harmonic_source(Context& ctx, const HarmonicSource& source, TensorView f0, const Segments& segments,
                     const SourceNoise& noise, TensorView out);

}  // namespace shoal::ops
