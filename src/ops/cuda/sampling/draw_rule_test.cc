// The rule that the kernels follow, followed by one thread on the host: which entry it draws is what sample
// draws.
#include "ops/cuda/sampling/draw_rule.cuh"

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/draw_testing.h"
#include "ops/sample.h"

namespace shoal::ops::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One thread that holds every quad.
class HostTeam {
 public:
  Leader lead(const Leader& leader, uint64_t&) {
    ++races;
    return leader;
  }
  static RankedWeight sum(const RankedWeight& ranked) { return ranked; }

  int races = 0;
};

class HostEntries {
 public:
  explicit HostEntries(std::vector<float> logits) : logits_(std::move(logits)) {
    logits_.resize((logits_.size() + 3) / 4 * 4, kNegativeInfinity);
  }
  template <typename Body>
  void each(Body body) const {
    for (size_t at = 0; at < logits_.size(); at += 4) {
      const float x[4] = {logits_[at], logits_[at + 1], logits_[at + 2], logits_[at + 3]};
      const auto quad = static_cast<int32_t>(at / 4);
      body(quad, x, [quad](const NoiseStream& stream) { return noise_of_quad(stream, quad); });
    }
  }
  uint32_t largest() const {
    uint32_t key = 0;
    for (const float x : logits_) key = std::max(key, ordered(x));
    return key;
  }

 private:
  std::vector<float> logits_;
};

DrawSettings settings_of(const DrawRow& row, uint32_t codebook) {
  return {{row.seed, row.frame, codebook}, row.temperature, row.top_p, row.top_k};
}

class DrawRuleTest : public testing::Test, protected MatrixFixture {
 protected:
  void expect_the_rules_entry(std::vector<float> logits, const DrawRow& row, const char* what) {
    const HostEntries entries(logits);
    HostTeam team;
    const int32_t got =
        draw_entry(team, entries, settings_of(row, 4), Leader(), {value_of(entries.largest())},
                   [](int32_t, DrawSettings&) { return false; });
    const SampleRow settings{.temperature = row.temperature,
                             .top_p = row.top_p,
                             .top_k = row.top_k,
                             .seed = row.seed,
                             .frame = row.frame,
                             .codebook = 4};
    int32_t want = -1;
    sample(ctx_, view_of(logits, {1, static_cast<int64_t>(logits.size())}), {&settings, 1}, {&want, 1});
    ASSERT_EQ(got, want) << what << " of " << logits.size() << ", top_p " << row.top_p << " top_k "
                         << row.top_k << " temperature " << row.temperature;
    ++draws_;
    races_ += team.races;
  }

  int draws_ = 0, races_ = 0;
};

TEST_F(DrawRuleTest, DrawsWhatSampleDraws) {
  DrawRows rows(1);
  for (const int64_t vocabulary : {1, 2, 3, 4, 5, 7, 17, 40, 1024, 4097, 32'000})
    for (int kind = 0; kind < kLogitKinds; ++kind)
      for (int i = 0; i < (vocabulary < 1000 ? 400 : 40); ++i)
        expect_the_rules_entry(
            logits_of(static_cast<LogitKind>(kind), vocabulary, static_cast<unsigned>(vocabulary + i)),
            rows.next(), std::to_string(kind).c_str());
  EXPECT_LT(races_, 2 * draws_);
}

TEST_F(DrawRuleTest, DrawsFromTheWholeVocabulary) {
  DrawRows rows(2);
  for (int kind = 0; kind < kLogitKinds; ++kind)
    for (int i = 0; i < 6; ++i)
      expect_the_rules_entry(logits_of(static_cast<LogitKind>(kind), 155'776, static_cast<unsigned>(i)),
                             rows.next(), std::to_string(kind).c_str());
}

TEST_F(DrawRuleTest, AboutOneDrawInFiveNeedsASecondRace) {
  DrawRows rows(3);
  for (unsigned i = 0; i < 2000; ++i) {
    DrawRow row = rows.next();
    row.temperature = row.top_p = 0.8f;
    row.top_k = 0;
    expect_the_rules_entry(logits_of(LogitKind::flat, 1024, i), row, "flat");
  }
  EXPECT_LT(races_, 1.35 * draws_);
  EXPECT_GT(races_, 1.05 * draws_);
}

TEST(DrawRule, KeysRiseWithTheValues) {
  const std::vector<float> rising = {-kInfinity, -3e38f, -1.0f, -1e-45f, 0.0f,
                                     1e-45f,     1e-38f, 2.0f,  3e38f,   kInfinity};
  for (size_t i = 0; i < rising.size(); ++i) {
    EXPECT_EQ(value_of(ordered(rising[i])), rising[i]);
    if (i > 0) {
      EXPECT_LT(ordered(rising[i - 1]), ordered(rising[i])) << i;
    }
  }
  EXPECT_EQ(ordered(-0.0f), ordered(0.0f));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float x : {nan, -nan, kInfinity, -kInfinity}) EXPECT_TRUE(is_hopeless(ordered(x))) << x;
  for (const float x : {-3e38f, 0.0f, 3e38f}) EXPECT_FALSE(is_hopeless(ordered(x))) << x;
  EXPECT_TRUE(is_hopeless(std::max(ordered(nan), ordered(1.0f))));
}

// Every float between 0 and -30, and some beyond: the bits of the CPU's weights, counted.
TEST(DrawRule, WeightsHaveTheBitsOfTheKernel) {
  const VectorKernels& plain = cpu::vector_kernels_portable();
  std::vector<float> distances = {-0.0f,  -25.0f, -24.999998f, -25.000002f,
                                  -87.0f, -88.0f, -1e30f,      -kInfinity};
  for (uint32_t bits = 0; bits < 0x41f00000u; bits += 977) distances.push_back(-std::bit_cast<float>(bits));
  std::vector<float> weights(distances.size());
  plain.softmax_weights(distances.data(), 0.0f, weights.data(), static_cast<int64_t>(distances.size()));
  for (size_t i = 0; i < distances.size(); ++i)
    ASSERT_EQ(static_cast<double>(weight_units(distances[i])), std::ldexp(weights[i], 35)) << distances[i];
  plain.exp_nonpositive(distances.data(), weights.data(), static_cast<int64_t>(distances.size()));
  for (size_t i = 0; i < distances.size(); ++i)
    ASSERT_EQ(exp_nonpositive(distances[i]), weights[i]) << distances[i];
}

}  // namespace
}  // namespace shoal::ops::cuda
