// Short-time Fourier transforms of the few points that a vocoder's last layer works on (spec
// kokoro 6.2, 6.3).
#pragma once

#include "ops/context.h"
#include "ops/segments.h"

namespace shoal::ops {

// A periodic Hann window of `points`; frames are centred, one each `hop` samples.
struct ShortStft {
  int64_t points = 20;  // even, a multiple of hop and at least twice that, at most 64
  int64_t hop = 5;
  int64_t bins() const { return points / 2 + 1; }
};

// y[t] = [magnitudes | phases in (-pi, pi]] of frame t; both ends of a segment are mirrored. The first and
// the last bin are real: their phase is exactly 0 or pi. The phase of nothing is 0. x: f32 samples; segments:
// those of y, at one row per hop and one extra; a segment has frames * rate * hop samples, at begin * hop,
// and at least points / 2 + 1. y: f32 [total_rows, 2 * bins]; its gaps become zeros.
void short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments, TensorView y);

// The inverse, for spectra whose magnitude is exp(x) and whose phase is sin(x): overlap-added frames divided
// by the overlap-added squared window, without the first and last points / 2 samples (torch.istft, centred).
// x: f32 [total_rows, 2 * bins], what lies in gaps is never read; y: f32 [total_rows * hop] samples; its gaps
// become zeros.
void inverse_short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments,
                        TensorView y);

}  // namespace shoal::ops
