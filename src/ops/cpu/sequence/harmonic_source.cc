// The harmonic source on the CPU. Phases at the middles of rows are summed in f64, segment by segment;
// between two middles a phase rises by the same step each sample, which 32-bit turns count exactly
// (sequence_source.h turns blocks of them into samples).
#include <algorithm>
#include <cmath>

#include "ops/cpu/rows/segment_pieces.h"
#include "ops/cpu/sequence/sequence_kernels.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kBlocks = 16;  // of samples in a piece of work: about 20 us

double fraction(double turns) { return turns - std::floor(turns); }

// A fraction of a turn in units of 2^-32.
uint32_t fixed(double turns) {
  return static_cast<uint32_t>(static_cast<uint64_t>(std::nearbyint(fraction(turns) * 0x1p32)));
}

// The turns of a harmonic over the samples from one row's middle to the next.
struct Rise {
  uint32_t start, step;  // at the first of the samples, and from each to the next
};

// Phase increments of a segment, [rows + 1, kHarmonics]: zero before the middle of row 0 and after that of
// the last row (kokoro/MODEL.md, Samples).
void sum_phases(const HarmonicSource& source, const float* f0, int64_t rows, Rise* rises) {
  const auto samples = static_cast<double>(source.samples_per_row);
  for (int64_t h = 0; h < kHarmonics; ++h) {
    double turns = 0;  // at the middle of row j, for one sample a row
    for (int64_t j = 0; j <= rows; ++j) {
      double rate = 0;  // turns a sample, in [0, 1)
      if (j < rows && std::isfinite(f0[j]))
        rate = fraction(static_cast<double>(h + 1) * static_cast<double>(f0[j]) /
                        static_cast<double>(source.sample_rate_hz));
      if (j == 0) turns = rate;
      const double step = j == 0 ? 0 : rate;
      rises[j * kHarmonics + h] = {fixed(samples * turns + 0.5 * step), fixed(step)};
      if (j > 0) turns = fraction(turns + rate);
    }
  }
}

struct SourceTask {
  const HarmonicSource& source;
  TensorView f0;
  const Segments& segments;
  const SourceNoise& noise;
  TensorView out;
  const Rise* rises;  // [total_rows + segments, kHarmonics]

  // Samples [first, first + count) of a segment; first is a multiple of kSourceBlock.
  void run(const SegmentPiece& piece) const {
    for (int64_t at = 0; at < piece.count; at += kSourceBlock)
      block(piece.segment, piece.first + at, std::min<int64_t>(kSourceBlock, piece.count - at));
  }

 private:
  void block(int64_t segment, int64_t first, int64_t count) const {
    uint32_t phases[kHarmonics * kSourceBlock] = {};
    float amplitudes[kSourceBlock] = {}, levels[kSourceBlock] = {}, noises[kHarmonics * kSourceBlock] = {};
    float samples[kSourceBlock];
    fill_phases(segment, first, count, phases);
    fill_levels(segment, first, count, amplitudes, levels);
    const bool drawn = noise.given.empty();
    if (!drawn) fill_noise(segment, first, count, noises);
    sequence_kernels().harmonic_source({.harmonics = kHarmonics,
                                        .phases = phases,
                                        .amplitudes = amplitudes,
                                        .levels = levels,
                                        .noise = drawn ? nullptr : noises,
                                        .seed = drawn ? noise.seeds[static_cast<size_t>(segment)] : 0,
                                        .block = static_cast<uint32_t>(first / kSourceBlock),
                                        .weights = source.weights.as<float>(),
                                        .bias = source.bias.as<float>()[0],
                                        .out = samples});
    std::copy_n(samples, count, out.as<float>() + first_sample(segment) + first);
  }

  int64_t first_sample(int64_t segment) const { return segments.begin(segment) * source.samples_per_row; }

  void fill_phases(int64_t segment, int64_t first, int64_t count, uint32_t* phases) const {
    const int64_t width = source.samples_per_row;
    const Rise* const all = rises + (segments.begin(segment) + segment) * kHarmonics;
    for (int64_t t = first; t < first + count;) {
      const int64_t row = (t + width / 2) / width;  // rise that t is of
      const int64_t start = row * width - width / 2;
      const int64_t end = std::min(first + count, start + width);
      for (int64_t h = 0; h < kHarmonics; ++h) {
        const Rise& rise = all[row * kHarmonics + h];
        uint32_t* const to = phases + h * kSourceBlock;
        for (int64_t s = t; s < end; ++s)
          to[s - first] = rise.start + static_cast<uint32_t>(s - start) * rise.step;
      }
      t = end;
    }
  }

  void fill_levels(int64_t segment, int64_t first, int64_t count, float* amplitudes, float* levels) const {
    const float* pitch = f0.as<float>() + segments.begin(segment);
    for (int64_t i = 0; i < count; ++i) {
      const bool voiced = pitch[(first + i) / source.samples_per_row] > source.voiced_above_hz;
      amplitudes[i] = voiced ? source.amplitude : 0.0f;
      levels[i] = voiced ? source.noise : source.amplitude / 3;
    }
  }

  void fill_noise(int64_t segment, int64_t first, int64_t count, float* noises) const {
    for (int64_t i = 0; i < count; ++i) {
      const float* given = noise.given.row<float>(first_sample(segment) + first + i);
      for (int64_t h = 0; h < kHarmonics; ++h) noises[h * kSourceBlock + i] = given[h];
    }
  }
};

}  // namespace

void harmonic_source(Context& ctx, const HarmonicSource& source, TensorView f0, const Segments& segments,
                     const SourceNoise& noise, TensorView out) {
  const Workspace::Scope scope(*ctx.workspace);
  clear_gaps(segments, out.reshape({segments.total_rows(), source.samples_per_row}));
  static_assert(sizeof(Rise) == sizeof(int64_t));
  const TensorView all =
      ctx.workspace->alloc(DType::i64, {segments.total_rows() + segments.count(), kHarmonics});
  Rise* const rises = static_cast<Rise*>(all.data());
  ctx.team->parallel_for(segments.count(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t s = begin; s < end; ++s)
      sum_phases(source, f0.as<float>() + segments.begin(s), segments.rows(s),
                 rises + (segments.begin(s) + s) * kHarmonics);
  });
  const std::span<const SegmentPiece> pieces =
      cut_segments(ctx, segments, kBlocks * kSourceBlock,
                   [&](int64_t s) { return segments.rows(s) * source.samples_per_row; });
  const SourceTask task{source, f0, segments, noise, out, rises};
  ctx.team->parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) task.run(pieces[static_cast<size_t>(i)]);
  });
}

}  // namespace shoal::ops::cpu
