// The whole draw against the rule of sample.h, one id after the other: tokens must be the same, always.
#include <cmath>

#include "ops/sample.h"
#include "ops/sampling_noise.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

using Floats = std::vector<float>;

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr int64_t kVocabulary = 155'776;  // of S1

Floats masked_and_penalised(const Floats& logits, const SampleRow& row) {
  Floats result = logits;
  const bool all = row.allowed_end < 0;
  for (int32_t id = 0; id < static_cast<int32_t>(logits.size()); ++id)
    if (!all && (id < row.allowed_begin || id > row.allowed_end) && id != row.allowed_extra)
      result[static_cast<size_t>(id)] = -kInfinite;
  for (const int32_t id : row.penalised) {
    const float logit = logits[static_cast<size_t>(id)];
    if (result[static_cast<size_t>(id)] != -kInfinite)
      result[static_cast<size_t>(id)] =
          logit < 0 ? logit * row.repetition_penalty : logit / row.repetition_penalty;
  }
  return result;
}

// The weights are the kernels' own (their accuracy is tested beside them); which entries they keep is found
// by sorting, and the noise comes from the generator's definition.
int32_t drawn_one_by_one(const Floats& given, const SampleRow& row) {
  const VectorKernels& plain = cpu::vector_kernels_portable();
  const Floats logits = masked_and_penalised(given, row);
  const float largest = *std::max_element(logits.begin(), logits.end());
  Floats weights(logits.size());
  plain.softmax_weights(logits.data(), largest, weights.data(), static_cast<int64_t>(logits.size()));
  std::vector<int32_t> kept = ref::kept_by_sorting(logits, wide(weights), row.top_p, row.top_k);
  std::ranges::sort(kept);
  float best = -1;
  int32_t token = -1;
  for (const int32_t id : kept) {
    float weight = (logits[static_cast<size_t>(id)] - largest) / std::max(row.temperature, 1e-5f);
    plain.exp_nonpositive(&weight, &weight, 1);
    const float score =
        weight / exponential_noise({row.seed, row.frame, row.codebook}, static_cast<uint32_t>(id));
    if (score > best) best = score, token = id;
  }
  return token;
}

struct Logits {
  const char* name;
  Floats values;
};

std::vector<Logits> shapes(int64_t vocab, unsigned seed) {
  const size_t n = static_cast<size_t>(vocab);
  std::vector<Logits> cases = {{"flat", random_values(vocab, seed)},
                               {"nearly uniform", random_values(vocab, seed, 1e-3f)},
                               {"uniform", Floats(n, -2.5f)},
                               {"peaked", random_values(vocab, seed, 4)},
                               {"ties", random_values(vocab, seed)},
                               {"two levels", random_values(vocab, seed)},
                               {"one peak", random_values(vocab, seed, 0.1f)},
                               {"masked", random_values(vocab, seed)},
                               {"huge", random_values(vocab, seed, 1e30f)},
                               {"zeros of both signs", Floats(n)}};
  for (float& v : cases[4].values) v = std::round(2 * v) / 2;
  for (float& v : cases[5].values) v = v > 1 ? 2.0f : 1.5f;
  cases[6].values[n / 3] = 40;
  for (size_t i = 0; i < n; ++i)
    if (i % 5 != 2) cases[7].values[i] = -kInfinite;
  cases[7].values.back() = 0.5f;
  for (size_t i = 0; i < n; i += 2) cases[9].values[i] = -0.0f;
  return cases;
}

class SampleOracleTest : public testing::Test, protected MatrixFixture {
 protected:
  // The token of every instruction set is that of the rule.
  void expect_drawn(Logits& logits, const SampleRow& row) {
    const int64_t vocab = static_cast<int64_t>(logits.values.size());
    const int32_t want = drawn_one_by_one(logits.values, row);
    for (const CpuIsa isa : {CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512}) {
      if (isa > best_cpu_isa()) continue;
      set_cpu_isa(isa);
      int32_t token = -1;
      sample(ctx_, view_of(logits.values, {1, vocab}), {&row, 1}, {&token, 1});
      ASSERT_EQ(token, want) << name_of(isa) << ", " << logits.name << ' ' << vocab << ", top_p " << row.top_p
                             << " top_k " << row.top_k << " temperature " << row.temperature << " allowed "
                             << row.allowed_begin << ".." << row.allowed_end << ", " << row.allowed_extra;
    }
  }

  // Settings of all kinds, one after the other.
  SampleRow next_row(int64_t vocab) {
    const auto any_id = [&] { return static_cast<int32_t>(generator_() % static_cast<uint64_t>(vocab)); };
    const auto one_of = [&](std::initializer_list<float> values) {
      return *(values.begin() + static_cast<ptrdiff_t>(generator_() % values.size()));
    };
    SampleRow row{.temperature = one_of({0.0f, 0.5f, 0.8f, 1.0f, 2.0f}),
                  .top_p = one_of({0.0f, 1e-3f, 0.3f, 0.7f, 0.8f, 0.95f, 0.9999f, 1.0f}),
                  .top_k = static_cast<int32_t>(one_of({0, 0, 0, 1, 3, 30, 1000})),
                  .seed = generator_(),
                  .frame = static_cast<uint32_t>(generator_()),
                  .codebook = static_cast<uint32_t>(generator_() % 12)};
    penalised_ = {any_id(), any_id(), any_id()};
    if (generator_() % 2 == 0) row.penalised = penalised_, row.repetition_penalty = one_of({0.7f, 1.3f});
    if (generator_() % 3 == 0) {
      row.allowed_begin = any_id(), row.allowed_end = any_id();
      if (row.allowed_begin > row.allowed_end) std::swap(row.allowed_begin, row.allowed_end);
      if (generator_() % 2 == 0) row.allowed_extra = any_id();
    }
    return row;
  }

 private:
  std::mt19937_64 generator_{1};
  std::vector<int32_t> penalised_;
};

bool can_be_drawn(const Floats& logits, const SampleRow& row) {
  return std::ranges::any_of(masked_and_penalised(logits, row), [](float v) { return v != -kInfinite; });
}

TEST_F(SampleOracleTest, TinyVocabularies) {
  for (int64_t vocab = 1; vocab <= 40; ++vocab)
    for (Logits& logits : shapes(vocab, static_cast<unsigned>(vocab)))
      for (int i = 0; i < 20; ++i) {
        const SampleRow row = next_row(vocab);
        if (can_be_drawn(logits.values, row)) expect_drawn(logits, row);
      }
}

TEST_F(SampleOracleTest, CodebookVocabularies) {
  for (const int64_t vocab : {1024, 4097})
    for (Logits& logits : shapes(vocab, static_cast<unsigned>(vocab)))
      for (int i = 0; i < 30; ++i) expect_drawn(logits, next_row(vocab));
}

TEST_F(SampleOracleTest, TheWholeVocabulary) {
  for (Logits& logits : shapes(kVocabulary, 1)) {
    expect_drawn(logits, {.top_p = 0.8f, .seed = 3, .frame = 5});
    for (int i = 0; i < 4; ++i) expect_drawn(logits, next_row(kVocabulary));
  }
}

}  // namespace
}  // namespace shoal::ops
