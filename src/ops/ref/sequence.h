// The ops along an utterance by definition, in double, for one utterance.
#pragma once

#include "ops/ref/matrix.h"

namespace shoal::ops::ref {

// One direction of an LSTM: gates i, f, g, o; weight_ih [4 hidden, inputs], weight_hh [4 hidden, hidden],
// bias [4 hidden] (gates in the order i, f, g, o).
struct Lstm {
  int64_t inputs = 0, hidden = 0;
  Values weight_ih, weight_hh, bias;
};

// Values and how far sums in f32 may be from them.
struct Bounded {
  Values values, bounds;
};

// h of every row, from the first row to the last. x: [rows, inputs] -> [rows, hidden]
// Bounds: the error of a gate is (inputs + hidden + 8) units of its magnitudes plus the error from the
// previous hidden values; the error of cells and hidden values is that of their factors plus 8 units.
Bounded lstm(const Values& x, const Lstm& weights);

// Draw number `harmonic` of a sample (harmonic_source.h): Philox's words, then logarithm and cosine in
// double.
double source_noise(uint64_t seed, int64_t sample, int64_t harmonic);

struct Source {
  Values weights;  // one for each harmonic
  double bias = 0;
  int64_t sample_rate_hz = 24000, samples_per_row = 300;
};

// kokoro/MODEL.md, Samples 8, sample by sample.   f0: [rows]; noise: [samples, harmonics] -> [samples]
Values harmonic_source(const Values& f0, const Values& noise, const Source& source);

// Complex spectra of mirrored samples (kokoro/MODEL.md, Samples): x [samples] -> [samples / hop + 1 frames,
// bins, 2].
Values stft(const Values& x, int64_t points, int64_t hop);
// torch.istft, centred (kokoro/MODEL.md, Samples): [frames, bins, 2] -> [(frames - 1) * hop] samples.
Values inverse_stft(const Values& spectra, int64_t points, int64_t hop);

}  // namespace shoal::ops::ref
