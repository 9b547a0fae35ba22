#include "ops/cuda/device/cuda_testing.h"
#include "ops/harmonic_source_testing.h"
#include "ops/sequence_testing.h"

namespace shoal::ops::cuda {
namespace {

using source_testing::bounds;
using source_testing::drawn;
using source_testing::melody;
using source_testing::Voice;

using Rows = std::vector<std::vector<float>>;

struct Job {
  std::vector<int32_t> lengths;
  Rows f0;
  std::vector<uint64_t> seeds;
  Rows noise;  // [samples, kHarmonics] of each; empty: drawn
};

Job job_of(std::vector<int32_t> lengths) {
  Job job{std::move(lengths), {}, {}, {}};
  for (const int32_t length : job.lengths) {
    job.f0.push_back(melody(length));
    job.seeds.push_back(0x9e3779b97f4a7c15u * static_cast<uint64_t>(length));
  }
  return job;
}

class CudaHarmonicSource : public CudaTest {
 protected:
  struct Operands {
    Segments segments;
    std::vector<float> f0, given;
  };
  static Operands operands(const Job& job, const Utterances& utterances, int64_t width) {
    Operands o{utterances.segments(), laid_out(job.f0, utterances.segments(), 1, kNan), {}};
    if (!job.noise.empty()) o.given = laid_out(job.noise, o.segments, width * kHarmonics, kNan);
    return o;
  }

  Rows run(Voice& voice, const Job& job, int32_t gap = 2) {
    poison(1 << 18);
    const Utterances utterances(job.lengths, gap);
    const int64_t width = voice.samples_per_row;
    const Operands o = operands(job, utterances, width);
    const int64_t rows = o.segments.total_rows();
    const Tensor weights = put(voice.weights, {kHarmonics}), bias = put(voice.bias, {1});
    const Tensor f0 = put(o.f0, {rows}), out = garbage({rows * width});
    Tensor given, seeds;
    SourceNoise noise{.seeds = job.seeds};
    if (job.noise.empty()) {
      const std::vector<int64_t> bits(job.seeds.begin(), job.seeds.end());
      seeds = put(bits, {static_cast<int64_t>(bits.size())});
      noise.seed_table = seeds;
    } else {
      given = put(o.given, {rows * width, kHarmonics});
      noise.given = given;
    }
    HarmonicSource source = voice.source();
    source.weights = weights;
    source.bias = bias;
    harmonic_source(ctx(), source, f0, placed(o.segments), noise, out);
    return taken_out(get(out), o.segments, width);
  }

  Rows run_on_the_host(Voice& voice, const Job& job) {
    const Utterances utterances(job.lengths, 2);
    const int64_t width = voice.samples_per_row;
    Operands o = operands(job, utterances, width);
    const int64_t rows = o.segments.total_rows();
    std::vector<float> out(static_cast<size_t>(rows * width));
    SourceNoise noise{.seeds = job.seeds};
    if (!o.given.empty()) noise.given = view_of(o.given, {rows * width, kHarmonics});
    harmonic_source(host_ctx(), voice.source(), view_of(o.f0, {rows}), o.segments, noise,
                    view_of(out, {rows * width}));
    return taken_out(out, o.segments, width);
  }
};

TEST_F(CudaHarmonicSource, MatchesTheOracle) {
  for (const int64_t width : {300, 2, 38}) {
    Voice voice{.samples_per_row = width};
    const Job job = job_of({1, 2, 40});
    const Rows out = run(voice, job);
    for (size_t s = 0; s < out.size(); ++s) {
      const ref::Values noise = drawn(job.seeds[s], static_cast<int64_t>(out[s].size()));
      expect_close(out[s], ref::harmonic_source(wide(job.f0[s]), noise, voice.oracle()),
                   bounds(voice, out[s].size()));
    }
  }
}

// Nearly all bits are the CPU's: where a phase is a unit of 2^-32 off, and rounds to another of 2^-23, a sine
// differs by a step of it.
TEST_F(CudaHarmonicSource, EqualsTheCpu) {
  for (const bool given : {false, true}) {
    Voice voice;
    Job job = job_of({640, 3, 97});
    if (given)
      for (const int32_t length : job.lengths)
        job.noise.push_back(random_values(length * 300 * kHarmonics, static_cast<unsigned>(length)));
    const Rows here = run_on_the_host(voice, job), there = run(voice, job);
    double weights = 0;
    for (const float w : voice.weights) weights += std::abs(w);
    size_t samples = 0, differing = 0;
    for (size_t s = 0; s < here.size(); ++s) {
      for (size_t t = 0; t < here[s].size(); ++t) differing += here[s][t] != there[s][t];
      samples += here[s].size();
      expect_close(there[s], wide(here[s]),
                   ref::Values(here[s].size(), weights * 0.1 * 6.3 * 0x1p-23 + 16 * kUnit));
    }
    EXPECT_LT(differing, samples / 100);
  }
}

TEST_F(CudaHarmonicSource, ASegmentIsTheSameInAnyBatch) {
  Voice voice;
  const Job job = job_of({5, 1, 33, 12, 80});
  for (const int32_t gap : {0, 1, 9}) {
    const Rows batch = run(voice, job, gap);
    for (size_t s = 0; s < batch.size(); ++s)
      expect_same_bits(run(voice, {{job.lengths[s]}, {job.f0[s]}, {job.seeds[s]}, {}}, 0)[0], batch[s]);
  }
}

TEST_F(CudaHarmonicSource, PhaseIsConstantAtBothEnds) {
  Voice voice;
  Job job{{4}, {{220, 230, 240, 250}}, {}, {std::vector<float>(4 * 300 * kHarmonics)}};
  const std::vector<float> out = run(voice, job)[0];
  for (size_t t = 1; t < 150; ++t) {
    EXPECT_EQ(out[t], out[0]) << t;
    EXPECT_EQ(out[out.size() - 1 - t], out.back()) << t;
  }
  EXPECT_NE(out[150], out[149]);
  EXPECT_NE(out[out.size() - 151], out.back());
}

TEST_F(CudaHarmonicSource, F0ThatIsNotANumberIsUnvoiced) {
  Voice voice;
  const Job job{{5}, {{0, -200, 10, kNan, std::numeric_limits<float>::infinity()}}, {1}, {}};
  const Rows there = run(voice, job), here = run_on_the_host(voice, job);
  expect_close(there[0], wide(here[0]), ref::Values(here[0].size(), 1e-6));
}

}  // namespace
}  // namespace shoal::ops::cuda
