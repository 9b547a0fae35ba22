#include "ops/harmonic_source.h"

#include "ops/harmonic_source_testing.h"

namespace shoal::ops {
namespace {

using Rows = std::vector<std::vector<float>>;

using source_testing::bounds;
using source_testing::drawn;
using source_testing::melody;
using source_testing::Voice;

struct Job {
  std::vector<int32_t> lengths;
  Rows f0;
  std::vector<uint64_t> seeds;
  Rows noise;  // [samples, kHarmonics] of each; empty: drawn
};

Rows run(Context& ctx, Voice& voice, const Job& job, int32_t gap = 2) {
  const Utterances utterances(job.lengths, gap);
  const Segments segments = utterances.segments();
  const int64_t rows = segments.total_rows(), width = voice.samples_per_row;
  std::vector<float> f0 = laid_out(job.f0, segments, 1, kNan);
  std::vector<float> out(static_cast<size_t>(rows * width), kNan), given;
  SourceNoise noise{.seeds = job.seeds};
  if (!job.noise.empty()) {
    given = laid_out(job.noise, segments, width * kHarmonics, kNan);
    noise.given = view_of(given, {rows * width, kHarmonics});
  }
  harmonic_source(ctx, voice.source(), view_of(f0, {rows}), segments, noise, view_of(out, {rows * width}));
  return taken_out(out, segments, width);
}

Job job_of(std::vector<int32_t> lengths) {
  Job job{std::move(lengths), {}, {}, {}};
  for (const int32_t length : job.lengths) {
    job.f0.push_back(melody(length));
    job.seeds.push_back(0x9e3779b97f4a7c15u * static_cast<uint64_t>(length));
  }
  return job;
}

// The fixtures' noise: an integer hash of the index.
float hashed_noise(uint32_t i) {
  i = (i ^ i >> 16) * 0x7feb352du;
  i = (i ^ i >> 15) * 0x846ca68bu;
  i ^= i >> 16;
  return (static_cast<float>(i >> 8) * 0x1p-23f - 1.0f) * std::sqrt(3.0f);
}

class HarmonicSourceTest : public IsaTest {};

TEST_P(HarmonicSourceTest, MatchesTheOracleWithDrawnNoise) {
  for (const int64_t width : {300, 2, 38}) {
    Voice voice{.samples_per_row = width};
    const Job job = job_of({1, 2, 40});
    const Rows out = run(ctx_, voice, job);
    for (size_t s = 0; s < out.size(); ++s) {
      const ref::Values noise = drawn(job.seeds[s], static_cast<int64_t>(out[s].size()));
      expect_close(out[s], ref::harmonic_source(wide(job.f0[s]), noise, voice.oracle()),
                   bounds(voice, out[s].size()));
    }
  }
}

TEST_P(HarmonicSourceTest, MatchesTheOracleWithGivenNoise) {
  Voice voice;
  Job job = job_of({30, 3});
  for (const int32_t length : job.lengths) {
    std::vector<float> noise;
    for (uint32_t i = 0; i < static_cast<uint32_t>(length) * 300 * kHarmonics; ++i)
      noise.push_back(hashed_noise(i));
    job.noise.push_back(noise);
  }
  job.seeds.clear();
  const Rows out = run(ctx_, voice, job);
  for (size_t s = 0; s < out.size(); ++s)
    expect_close(out[s], ref::harmonic_source(wide(job.f0[s]), wide(job.noise[s]), voice.oracle()),
                 bounds(voice, out[s].size()));
}

TEST_P(HarmonicSourceTest, ASegmentIsTheSameInAnyBatchAndTeam) {
  Voice voice;
  const Job job = job_of({5, 1, 33, 12});
  Rows alone;
  for (size_t s = 0; s < job.f0.size(); ++s)
    alone.push_back(run(ctx_, voice, {{job.lengths[s]}, {job.f0[s]}, {job.seeds[s]}, {}}, 0)[0]);
  for (const int threads : {1, 3})
    for (const int32_t gap : {0, 1, 9}) {
      ThreadTeam team(threads);
      Context ctx = ctx_;
      ctx.team = &team;
      const Rows batch = run(ctx, voice, job, gap);
      for (size_t s = 0; s < batch.size(); ++s) expect_same_bits(batch[s], alone[s]);
    }
}

TEST_P(HarmonicSourceTest, HasTheSameBitsOnEveryInstructionSet) {
  Voice voice;
  const Job job = job_of({5, 33});
  const Rows own = run(ctx_, voice, job);
  set_cpu_isa(CpuIsa::portable);
  const Rows plain = run(ctx_, voice, job);
  for (size_t s = 0; s < own.size(); ++s) expect_same_bits(own[s], plain[s]);
}

// The phase is constant before the middle of the first row and after that of the last; between them it moves.
TEST_P(HarmonicSourceTest, PhaseIsConstantAtBothEnds) {
  Voice voice;
  Job job{{4}, {{220, 230, 240, 250}}, {}, {std::vector<float>(4 * 300 * kHarmonics)}};
  const std::vector<float> out = run(ctx_, voice, job)[0];
  for (size_t t = 1; t < 150; ++t) {
    EXPECT_EQ(out[t], out[0]) << t;
    EXPECT_EQ(out[out.size() - 1 - t], out.back()) << t;
  }
  EXPECT_NE(out[150], out[149]);
  EXPECT_NE(out[out.size() - 151], out.back());
}

// Rows at or below 10 Hz are only noise, of a third of the amplitude; so a negative pitch is unvoiced, and so
// is a pitch that is not a number.
TEST_P(HarmonicSourceTest, UnvoicedRowsAreNoise) {
  Voice voice;
  voice.weights = {1, 0, 0, 0, 0, 0, 0, 0, 0};
  voice.bias = {0};
  const Job job{{4, 4}, {{0, -200, 10, kNan}, {200, 200, 200, 200}}, {1, 2}, {}};
  const Rows out = run(ctx_, voice, job);
  double squares = 0;
  for (const float x : out[0]) squares += std::pow(std::atanh(x), 2);
  EXPECT_NEAR(std::sqrt(squares / 1200), 0.1 / 3, 0.1 / 3 * 0.08);  // 4 deviations of 1200 draws
  const ref::Values noise = drawn(1, 1200);
  for (size_t t = 0; t < 1200; ++t) EXPECT_NEAR(std::atanh(out[0][t]), noise[t * kHarmonics] / 30, 1e-6);
  EXPECT_GT(*std::ranges::max_element(out[1]), 0.09f);
}

INSTANTIATE_TEST_SUITE_P(Cpu, HarmonicSourceTest, every_isa(), name_of_isa);

class HarmonicSourcePlain : public testing::Test, protected MatrixFixture {};

// A draw's mean, variance, skewness and kurtosis over a million samples, within five standard deviations;
// the harmonics, seeds and neighbours are independent.
TEST_F(HarmonicSourcePlain, NoiseIsNormal) {
  constexpr int64_t kRows = 4000, kSamples = kRows * 300;
  const auto noise = [&](size_t harmonic, uint64_t seed) {
    Voice voice;
    std::ranges::fill(voice.weights, 0.0f);
    voice.weights[harmonic] = 0.01f;  // small enough that tanh keeps 1e-7
    voice.bias = {0};
    const Job job{{kRows}, {std::vector<float>(kRows)}, {seed}, {}};
    std::vector<float> values = run(ctx_, voice, job, 0)[0];
    for (float& x : values) x = static_cast<float>(std::atanh(static_cast<double>(x)) * 3000);
    return values;
  };
  const auto correlation = [](const std::vector<float>& a, const std::vector<float>& b, size_t shift) {
    double sum = 0;
    for (size_t i = shift; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i - shift];
    return sum / kSamples;
  };
  const std::vector<float> first = noise(0, 7);
  double power[5] = {};
  for (const double x : first)
    for (int p = 1; p <= 4; ++p) power[p] += std::pow(x, p) / kSamples;
  const double deviation = 5 / std::sqrt(static_cast<double>(kSamples));
  EXPECT_NEAR(power[1], 0, deviation);
  EXPECT_NEAR(power[2], 1, deviation * std::sqrt(2));
  EXPECT_NEAR(power[3], 0, deviation * std::sqrt(15));
  EXPECT_NEAR(power[4], 3, deviation * std::sqrt(96));
  for (const size_t shift : {1, 16, 32, 64}) EXPECT_NEAR(correlation(first, first, shift), 0, deviation);
  EXPECT_NEAR(correlation(first, noise(1, 7), 0), 0, deviation);
  EXPECT_NEAR(correlation(first, noise(0, 8), 0), 0, deviation);
}

TEST_F(HarmonicSourcePlain, MismatchedShapesAreNamed) {
  Voice voice;
  Job job = job_of({2, 3});
  job.seeds.pop_back();
  EXPECT_THROW(run(ctx_, voice, job), Error);
  job = job_of({2, 3});
  voice.samples_per_row = 3;
  EXPECT_THROW(run(ctx_, voice, job), Error);
}

}  // namespace
}  // namespace shoal::ops
