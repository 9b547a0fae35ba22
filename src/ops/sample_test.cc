#include "ops/sample.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "ops/sampling_noise.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

using Floats = std::vector<float>;

constexpr float kNever = std::numeric_limits<float>::infinity();

TEST(SamplingNoise, LogarithmIsAccurateForEveryUniform) {
  double worst = 0;
  for (uint32_t word = 0; word < 1u << 23; word += 7) {
    const float u = uniform_open(word << 9);
    const double want = -std::log(static_cast<double>(u));
    worst = std::max(worst, std::abs(negative_log(u) - want) / want);
  }
  const float last = uniform_open(0xffffffffu);
  worst = std::max(worst, std::abs(negative_log(last) + std::log(static_cast<double>(last))) / 0x1p-24);
  EXPECT_LE(worst, 3 * 0x1p-23);
}

class SampleTest : public IsaTest {
 protected:
  int32_t draw(Floats& logits, const SampleRow& row) {
    int32_t token = -1;
    sample(ctx_, view_of(logits, {1, static_cast<int64_t>(logits.size())}), {&row, 1}, {&token, 1});
    return token;
  }
  static ref::Values kernel_weights(const Floats& logits) {
    Floats weights(logits.size());
    const int64_t n = static_cast<int64_t>(logits.size());
    vector_kernels().softmax_weights(logits.data(), *std::max_element(logits.begin(), logits.end()),
                                     weights.data(), n);
    return wide(weights);
  }
};

struct NamedLogits {
  const char* name;
  Floats values;
};

std::vector<NamedLogits> difficult_logits(int64_t vocab, unsigned seed) {
  std::vector<NamedLogits> cases = {
      {"flat", random_values(vocab, seed, 0.01f)}, {"usual", random_values(vocab, seed, 3)},
      {"peaked", random_values(vocab, seed, 30)},  {"equal", Floats(static_cast<size_t>(vocab), -1.5f)},
      {"ties", random_values(vocab, seed, 2)},     {"masked", random_values(vocab, seed, 2)},
      {"huge", random_values(vocab, seed, 1e30f)}, {"zeros", Floats(static_cast<size_t>(vocab))}};
  for (float& v : cases[4].values) v = std::round(v);
  for (size_t i = 0; i < cases[5].values.size(); i += 3) cases[5].values[i] = -kNever;
  cases[5].values.back() = 1;
  for (size_t i = 0; i < cases[7].values.size(); i += 2) cases[7].values[i] = -0.0f;  // equal to 0
  return cases;
}

TEST_P(SampleTest, KeepsTheCandidatesThatSortingKeeps) {
  for (const int64_t vocab : {1, 2, 33, 1024, 20'000})
    for (const NamedLogits& logits : difficult_logits(vocab, static_cast<unsigned>(vocab)))
      for (const float top_p : {0.0f, 1e-4f, 0.3f, 0.8f, 0.95f, 0.9999f, 1.0f})
        for (const int32_t top_k : {0, 1, 5, 400}) {
          std::vector<int32_t> want =
              ref::kept_by_sorting(logits.values, kernel_weights(logits.values), top_p, top_k);
          std::ranges::sort(want);
          const SampleRow row{.top_p = top_p, .top_k = top_k};
          ASSERT_EQ(sampling_distribution(logits.values, row).ids, want)
              << logits.name << ' ' << vocab << " top_p " << top_p << " top_k " << top_k;
        }
}

TEST_P(SampleTest, KeepsTheCandidatesThatExactProbabilitiesKeep) {
  // Away from the boundary the exp of the kernels and of the library keep the same: at most an entry differs,
  // and only where the cumulative probability is within rounding of top_p.
  for (unsigned seed = 1; seed < 20; ++seed) {
    const Floats logits = random_values(155'776, seed, 3);
    ref::Values weights = wide(logits);
    const double largest = *std::max_element(weights.begin(), weights.end());
    for (double& w : weights) w = std::exp(w - largest);
    const auto want = ref::kept_by_sorting(logits, weights, 0.8f, 0).size();
    const auto got = sampling_distribution(logits, {.top_p = 0.8f}).ids.size();
    EXPECT_LE(want > got ? want - got : got - want, 1u) << seed;
    if (GetParam() != CpuIsa::avx512) break;  // the others are the same bits
  }
}

TEST_P(SampleTest, PenaltyIsAppliedOnceFromTheOriginalValue) {
  Floats logits = {2, -1, 1.5f, 0};
  const std::vector<int32_t> ids = {0, 1, 0, 0, 1};
  const SamplingDistribution got = sampling_distribution(
      logits, {.temperature = 1, .top_p = 1, .repetition_penalty = 2, .penalised = ids});
  const double total = std::exp(1.0) + std::exp(-2.0) + std::exp(1.5) + 1;
  ASSERT_EQ(got.ids, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_NEAR(got.probabilities[0], std::exp(1.0) / total, 1e-6);
  EXPECT_NEAR(got.probabilities[1], std::exp(-2.0) / total, 1e-6);
  EXPECT_EQ(draw(logits, {.top_p = kGreedyTopP, .repetition_penalty = 2, .penalised = ids}), 2);
  EXPECT_EQ(logits, (Floats{2, -1, 1.5f, 0}));
}

TEST_P(SampleTest, OnlyAllowedIdsAreDrawn) {
  Floats logits = random_values(500, 1, 0.1f);
  logits[3] = 50;
  std::map<int32_t, int> seen;
  for (uint32_t frame = 0; frame < 3000; ++frame)
    ++seen[draw(logits, {.temperature = 1,
                         .top_p = 1,
                         .allowed_begin = 100,
                         .allowed_end = 109,
                         .allowed_extra = 400,
                         .frame = frame})];
  EXPECT_EQ(seen.size(), 11u);
  for (const auto& [id, count] : seen) EXPECT_TRUE((id >= 100 && id <= 109) || id == 400) << id;
  logits[100] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(draw(logits, {.allowed_begin = 100, .allowed_end = 109}), Error);
  EXPECT_NO_THROW(draw(logits, {.allowed_begin = 101, .allowed_end = 109}));
}

TEST_P(SampleTest, DrawsFollowTheDistribution) {
  Floats logits = random_values(40, 3, 1.5f);
  SampleRow row{.temperature = 0.9f, .top_p = 0.97f, .seed = 12345, .codebook = 3};
  const SamplingDistribution distribution = sampling_distribution(logits, row);
  constexpr int kDraws = 200'000;
  std::vector<int> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) {
    row.frame = static_cast<uint32_t>(i);
    ++counts[static_cast<size_t>(draw(logits, row))];
  }
  double chi_square = 0;
  for (size_t i = 0; i < distribution.ids.size(); ++i) {
    const double expected = kDraws * static_cast<double>(distribution.probabilities[i]);
    const int count = std::exchange(counts[static_cast<size_t>(distribution.ids[i])], 0);
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 0) << "an id outside the kept ones was drawn";
  const double freedom = static_cast<double>(distribution.ids.size()) - 1;
  ASSERT_GT(freedom, 10);
  EXPECT_LE(chi_square, freedom + 5 * std::sqrt(2 * freedom));
}

TEST_P(SampleTest, ATokenDependsOnItsRowAlone) {
  constexpr int64_t kVocab = 3000, kRows = 37;
  Floats all = random_values(kRows * (kVocab + 5), 8, 2);
  const TensorView logits = view_of(all, {kRows, kVocab + 5}).columns(2, kVocab + 2);
  std::vector<SampleRow> rows;
  for (uint32_t i = 0; i < kRows; ++i)
    rows.push_back({.temperature = 0.5f + 0.1f * static_cast<float>(i % 7),
                    .top_p = 0.9f,
                    .seed = i / 3,
                    .frame = i,
                    .codebook = i % 10});
  std::vector<int32_t> together(kRows);
  sample(ctx_, logits, rows, together);
  set_cpu_isa(CpuIsa::portable);
  for (size_t i = 0; i < kRows; ++i) {
    int32_t alone = -1;
    const int64_t at = static_cast<int64_t>(i);
    sample(ctx_, logits.slice(at, at + 1), {&rows[i], 1}, {&alone, 1});
    EXPECT_EQ(alone, together[i]) << i;
  }
  EXPECT_GT(std::set<int32_t>(together.begin(), together.end()).size(), 20u);
  sample(ctx_, logits.slice(0, 0), {}, {});
}

TEST_P(SampleTest, EveryPartOfTheCounterMatters) {
  Floats logits(4096);  // all equal: the draw is the noise's
  const SampleRow row{.temperature = 1, .top_p = 1, .seed = 7, .frame = 3, .codebook = 2};
  std::set<int32_t> tokens = {draw(logits, row)};
  SampleRow other = row;
  other.seed = 8;
  tokens.insert(draw(logits, other));
  other = row, other.seed = row.seed + (uint64_t{1} << 32);
  tokens.insert(draw(logits, other));
  other = row, other.frame = 4;
  tokens.insert(draw(logits, other));
  other = row, other.codebook = 1;
  tokens.insert(draw(logits, other));
  EXPECT_EQ(tokens.size(), 5u);
  // The race as it is defined, entry by entry.
  int32_t best = 0;
  for (uint32_t i = 0; i < 4096; ++i) {
    const auto noise = [&](uint32_t id) {
      return negative_log(uniform_open(philox4x32(7, {id / 4, 2, 3, 0})[id % 4]));
    };
    if (noise(i) < noise(static_cast<uint32_t>(best))) best = static_cast<int32_t>(i);
  }
  EXPECT_EQ(draw(logits, row), best);
}

TEST_P(SampleTest, BadLogitsAndSettingsAreTypedErrors) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Floats& bad : {Floats{1, nan, 2}, Floats{1, kNever}, Floats{-kNever, -kNever}, Floats{}}) {
    Floats logits = bad;
    EXPECT_THROW(draw(logits, {}), Error);
    EXPECT_THROW(draw(logits, {.top_p = kGreedyTopP}), Error);
  }
  Floats logits = {1, 2, 3};
  const std::vector<int32_t> beyond = {0, 3}, negative = {-1};
  for (const SampleRow& row : {SampleRow{.temperature = -1},
                               {.temperature = nan},
                               {.top_p = nan},
                               {.top_p = -0.1f},
                               {.top_k = -1},
                               {.repetition_penalty = 0},
                               {.penalised = beyond},
                               {.penalised = negative},
                               {.allowed_begin = 0, .allowed_end = 3},
                               {.allowed_begin = -1, .allowed_end = 2},
                               {.allowed_begin = 2, .allowed_end = 1},
                               {.allowed_end = 1, .allowed_extra = 3}})
    EXPECT_THROW(draw(logits, row), Error);
}

INSTANTIATE_TEST_SUITE_P(Isa, SampleTest, every_isa(), name_of_isa);

}  // namespace
}  // namespace shoal::ops
