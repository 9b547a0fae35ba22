#include "ops/harmonic_source.h"

#include "ops/harmonic_source_testing.h"
#include "ops/op_testing.h"

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

class HarmonicSourceTest : public OpTest {
 protected:
  Rows run(Voice& voice, const Job& job, int32_t gap = 2) {
    poison(1 << 18);
    const Utterances utterances(job.lengths, gap);
    const Segments segments = utterances.segments();
    const int64_t rows = segments.total_rows(), width = voice.samples_per_row;
    const Tensor f0 = put(laid_out(job.f0, segments, 1, kNan), {rows}), out = garbage({rows * width});
    const Tensor weights = put(voice.weights, {kHarmonics}), bias = put(voice.bias, {1});
    Tensor given, seeds;
    SourceNoise noise{.seeds = job.seeds};
    if (job.noise.empty()) {
      const std::vector<int64_t> bits(job.seeds.begin(), job.seeds.end());
      seeds = put(bits, {static_cast<int64_t>(bits.size())});
      noise.seed_table = seeds;
    } else {
      given = put(laid_out(job.noise, segments, width * kHarmonics, kNan), {rows * width, kHarmonics});
      noise.given = given;
    }
    HarmonicSource source = voice.source();
    source.weights = weights, source.bias = bias;
    harmonic_source(ctx(), source, f0, placed(segments), noise, out);
    return taken_out(get(out), segments, width);
  }
  Rows run_on_portable_cpu(Voice& voice, const Job& job) {
    return on_portable_cpu([&] { return run(voice, job); });
  }
};

TEST_P(HarmonicSourceTest, MatchesTheOracleWithDrawnNoise) {
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
  const Rows out = run(voice, job);
  for (size_t s = 0; s < out.size(); ++s)
    expect_close(out[s], ref::harmonic_source(wide(job.f0[s]), wide(job.noise[s]), voice.oracle()),
                 bounds(voice, out[s].size()));
}

TEST_P(HarmonicSourceTest, ASegmentIsTheSameInAnyBatch) {
  Voice voice;
  const Job job = job_of({5, 1, 33, 12, 80});
  Rows alone;
  for (size_t s = 0; s < job.f0.size(); ++s)
    alone.push_back(run(voice, {{job.lengths[s]}, {job.f0[s]}, {job.seeds[s]}, {}}, 0)[0]);
  for (const int32_t gap : {0, 1, 9}) {
    const Rows batch = run(voice, job, gap);
    for (size_t s = 0; s < batch.size(); ++s) expect_same_bits(batch[s], alone[s]);
  }
}

// All bits on CPUs, nearly all on a GPU: where a phase is a unit of 2^-32 off, and rounds to another of
// 2^-23, a sine differs by a step of it.
TEST_P(HarmonicSourceTest, HasTheBitsOfThePortableKernels) {
  for (const bool given : {false, true}) {
    Voice voice;
    Job job = job_of({on_gpu() ? 640 : 64, 3, 97});
    if (given)
      for (const int32_t length : job.lengths)
        job.noise.push_back(random_values(length * 300 * kHarmonics, static_cast<unsigned>(length)));
    const Rows want = run_on_portable_cpu(voice, job), got = run(voice, job);
    double weights = 0;
    for (const float w : voice.weights) weights += std::abs(w);
    size_t samples = 0, differing = 0;
    for (size_t s = 0; s < want.size(); ++s) {
      if (!on_gpu()) expect_same_bits(got[s], want[s]);
      for (size_t t = 0; t < want[s].size(); ++t) differing += got[s][t] != want[s][t];
      samples += want[s].size();
      expect_close(got[s], wide(want[s]),
                   ref::Values(want[s].size(), weights * 0.1 * 6.3 * 0x1p-23 + 16 * kUnit));
    }
    EXPECT_LT(differing, samples / 100);
  }
}

// The phase is constant before the middle of the first row and after that of the last; between them it moves.
TEST_P(HarmonicSourceTest, PhaseIsConstantAtBothEnds) {
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

// Rows at or below 10 Hz are only noise, of a third of the amplitude; so a negative pitch is unvoiced, and so
// is a pitch that is not a number.
TEST_P(HarmonicSourceTest, UnvoicedRowsAreNoise) {
  Voice voice;
  voice.weights = {1, 0, 0, 0, 0, 0, 0, 0, 0};
  voice.bias = {0};
  const Job job{{4, 4}, {{0, -200, 10, kNan}, {200, 200, 200, 200}}, {1, 2}, {}};
  const Rows out = run(voice, job);
  double squares = 0;
  for (const float x : out[0]) squares += std::pow(std::atanh(x), 2);
  EXPECT_NEAR(std::sqrt(squares / 1200), 0.1 / 3, 0.1 / 3 * 0.08);  // 4 deviations of 1200 draws
  const ref::Values noise = drawn(1, 1200);
  for (size_t t = 0; t < 1200; ++t) EXPECT_NEAR(std::atanh(out[0][t]), noise[t * kHarmonics] / 30, 1e-6);
  EXPECT_GT(*std::ranges::max_element(out[1]), 0.09f);
}

TEST_P(HarmonicSourceTest, AnInfinitePitchIsTheSameOnEveryMachine) {
  Voice voice;
  const Job job{{5}, {{0, -200, 10, kNan, std::numeric_limits<float>::infinity()}}, {1}, {}};
  const Rows want = run_on_portable_cpu(voice, job), got = run(voice, job);
  expect_close(got[0], wide(want[0]), ref::Values(want[0].size(), 1e-6));
}

// A draw's mean, variance, skewness and kurtosis over a million samples, within five standard deviations;
// the harmonics, seeds and neighbours are independent.
TEST_P(HarmonicSourceTest, NoiseIsNormal) {
  constexpr int64_t kRows = 4000, kSamples = kRows * 300;
  const auto noise = [&](size_t harmonic, uint64_t seed) {
    Voice voice;
    std::ranges::fill(voice.weights, 0.0f);
    voice.weights[harmonic] = 0.01f;  // small enough that tanh keeps 1e-7
    voice.bias = {0};
    const Job job{{kRows}, {std::vector<float>(kRows)}, {seed}, {}};
    std::vector<float> values = run(voice, job, 0)[0];
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

TEST_P(HarmonicSourceTest, TooFewSeedsAndAnOddRateAreRefused) {
  Voice voice;
  Job job = job_of({2, 3});
  job.seeds.pop_back();
  EXPECT_THROW(run(voice, job), Error);
  job = job_of({2, 3});
  voice.samples_per_row = 3;
  EXPECT_THROW(run(voice, job), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, HarmonicSourceTest, testing::ValuesIn(every_machine()), name_of_machine);

class HarmonicSourceOnCpus : public HarmonicSourceTest {};

TEST_P(HarmonicSourceOnCpus, TeamsOfAnySizeGiveTheSameBits) {
  Voice voice;
  const Job job = job_of({5, 1, 33, 12});
  const Rows two = run(voice, job);
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    ctx().team = &team;
    const Rows y = run(voice, job);
    for (size_t s = 0; s < y.size(); ++s) expect_same_bits(y[s], two[s]);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, HarmonicSourceOnCpus, testing::ValuesIn(every_cpu()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
