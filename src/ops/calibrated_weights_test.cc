#include "ops/calibrated_weights.h"

#include <cmath>
#include <cstring>

#include "ops/matrix_testing.h"

namespace shoal::ops {
namespace {

// Inputs that depend on each other, and of which a few are large, as those of a model's layers.
std::vector<float> dependent_rows(int64_t rows, int64_t depth, unsigned seed) {
  const int64_t hidden = depth / 6 + 1;
  const std::vector<float> mixing = random_values(hidden * depth, 99),
                           sources = random_values(rows * hidden, seed);
  std::vector<float> made = random_values(rows * depth, seed + 1, 0.3f);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < depth; ++k) {
      float& x = made[static_cast<size_t>(row * depth + k)];
      for (int64_t h = 0; h < hidden; ++h)
        x += sources[static_cast<size_t>(row * hidden + h)] * mixing[static_cast<size_t>(h * depth + k)];
      if (k % 29 == 3) x *= 6;
    }
  return made;
}

// Weights in 8 bits (group 0) or 4, as they were made.
struct Quantised {
  Tensor integers, scales, minima;
  RoundingError alone;
  CalibratedError calibrated;

  std::string bytes() const {
    std::string all;
    for (const Tensor* part : {&integers, &scales, &minima})
      all.append(static_cast<const char*>(part->view().data()), static_cast<size_t>(part->bytes()));
    return all;
  }
  ref::Values values(int64_t depth, int64_t group) const {
    ref::Values of_scales, of_minima, values;
    if (group == 0) {
      for (int64_t i = 0; i < integers.view().elements(); ++i)
        values.push_back(double{scales.as<float>()[i / depth]} * integers.as<int8_t>()[i]);
      return values;
    }
    for (const Bf16 scale : scales.span<Bf16>()) of_scales.push_back(bf16_to_float(scale));
    for (const Bf16 minimum : minima.span<Bf16>()) of_minima.push_back(bf16_to_float(minimum));
    const auto nibbles = integers.span<uint8_t>();
    return ref::int4_weights({nibbles.begin(), nibbles.end()}, of_scales, of_minima, depth, group);
  }
};

class CalibratedWeights : public testing::Test, protected MatrixFixture {
 protected:
  CalibratedWeights() { use(40, 150, 7); }

  void use(int64_t outputs, int64_t depth, unsigned seed) {
    outputs_ = outputs, depth_ = depth;
    weights_ = random_values(outputs * depth, seed);
    known_ = dependent_rows(300, depth, seed + 10), unknown_ = dependent_rows(200, depth, seed + 20);
  }
  InputStatistics statistics(std::vector<float> rows) {
    InputStatistics made(depth_);
    made.add(ctx_, view_of(rows, {std::ssize(rows) / depth_, depth_}));
    return made;
  }
  Quantised quantise(int64_t group, const InputStatistics* inputs) {
    const TensorView weight = view_of(weights_, {outputs_, depth_});
    Quantised made;
    if (group == 0) {
      made.integers = Tensor(DType::i8, weight.shape()), made.scales = Tensor(DType::f32, {outputs_});
      made.minima = Tensor(DType::f32, {0});
      if (inputs)
        made.calibrated = calibrate_int8(ctx_, weight, *inputs, made.integers, made.scales);
      else
        made.alone = round_to_int8(team_, weight, made.integers, made.scales);
      return made;
    }
    made.integers = Tensor(DType::u8, {outputs_, (depth_ + 1) / 2});
    made.scales = Tensor(DType::bf16, {outputs_, (depth_ + group - 1) / group});
    made.minima = Tensor(DType::bf16, made.scales.shape());
    const NibbleMatrix to{made.integers, made.scales, made.minima};
    if (inputs)
      made.calibrated = calibrate_int4(ctx_, weight, group, *inputs, to);
    else
      made.alone = round_to_int4(team_, weight, group, to);
    return made;
  }
  // The norm of what rounding changes in the products with these rows, as a share of theirs.
  double error_of(const ref::Values& values, const std::vector<float>& rows) const {
    double difference = 0, norm = 0;
    for (size_t row = 0; row < rows.size(); row += static_cast<size_t>(depth_))
      for (size_t w = 0; w < values.size(); w += static_cast<size_t>(depth_)) {
        double off = 0, whole = 0;
        for (size_t k = 0; k < static_cast<size_t>(depth_); ++k) {
          off += (values[w + k] - weights_[w + k]) * rows[row + k];
          whole += double{weights_[w + k]} * rows[row + k];
        }
        difference += off * off, norm += whole * whole;
      }
    return std::sqrt(difference / norm);
  }
  // Round to nearest over the range of each group.
  ref::Values nearest(int64_t group) const {
    ref::Values values;
    for (int64_t begin = 0, row_end = depth_; begin < std::ssize(weights_); row_end += depth_)
      for (; begin < row_end; begin += std::min(group, row_end - begin)) {
        const auto first = weights_.begin() + begin, last = first + std::min(group, row_end - begin);
        const double low = *std::min_element(first, last), high = *std::max_element(first, last);
        for (auto w = first; w != last; ++w)
          values.push_back(low + std::round((*w - low) / (high - low) * 15) * (high - low) / 15);
      }
    return values;
  }

  int64_t outputs_ = 0, depth_ = 0;
  std::vector<float> weights_, known_, unknown_;
};

TEST_F(CalibratedWeights, AreNearerToTheProductsOfInputsThatTheyHaveNotSeen) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    for (const int64_t group : {0, 32, 64, 128}) {
      use(24, seed == 1 ? 150 : 256, seed);
      const InputStatistics inputs = statistics(known_);
      const Quantised alone = quantise(group, nullptr), made = quantise(group, &inputs);
      const double before = error_of(alone.values(depth_, group), unknown_),
                   after = error_of(made.values(depth_, group), unknown_);
      EXPECT_LT(after, 0.8 * before) << "seed " << seed << ", group " << group;
      if (group > 0) {
        EXPECT_LT(after, 0.8 * error_of(nearest(group), unknown_)) << seed << " " << group;
      }
    }
  }
}

TEST_F(CalibratedWeights, TellHowFarTheirProductsAre) {
  const InputStatistics inputs = statistics(known_);
  for (const int64_t group : {0, 64}) {
    const Quantised alone = quantise(group, nullptr), made = quantise(group, &inputs);
    const double before = error_of(alone.values(depth_, group), known_),
                 after = error_of(made.values(depth_, group), known_);
    EXPECT_NEAR(made.calibrated.outputs_before.share(), before, 1e-3 * before) << group;
    EXPECT_NEAR(made.calibrated.outputs.share(), after, 1e-3 * after) << group;
    EXPECT_GE(made.calibrated.outputs.worst, after) << group;
    EXPECT_GT(made.calibrated.weights.share(), alone.alone.share()) << group;
    EXPECT_LT(made.calibrated.weights.share(), 3 * alone.alone.share()) << group;
  }
}

// Optimal brain surgery as Frantar et al. write it down: the inverse, one column at a time, all in double.
TEST_F(CalibratedWeights, Of8BitsAreThoseOfThePublishedMethod) {
  use(20, 40, 5);
  const InputStatistics inputs = statistics(known_);
  const Quantised made = quantise(0, &inputs);
  const auto n = static_cast<size_t>(depth_);
  std::vector<std::vector<double>> left(n, std::vector<double>(n)), inverse = left;
  double trace = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t row = 0; row < known_.size(); row += n)
        left[i][j] += double{known_[row + i]} * known_[row + j];
  for (size_t i = 0; i < n; ++i) trace += left[i][i];
  for (size_t i = 0; i < n; ++i) left[i][i] += 0.01 * trace / static_cast<double>(n), inverse[i][i] = 1;
  for (size_t p = 0; p < n; ++p)
    for (size_t i = 0; i < n; ++i) {
      if (i == p) continue;
      const double factor = left[i][p] / left[p][p];
      for (size_t j = 0; j < n; ++j)
        left[i][j] -= factor * left[p][j], inverse[i][j] -= factor * inverse[p][j];
    }
  for (size_t i = 0; i < n; ++i)
    for (double& value : inverse[i]) value /= left[i][i];
  ref::Values rest(weights_.begin(), weights_.end());
  int different = 0;
  for (size_t j = 0; j < n; ++j) {
    for (size_t row = 0; row < static_cast<size_t>(outputs_); ++row) {
      const double scale = made.scales.as<float>()[row], weight = rest[row * n + j];
      const double integer = std::clamp(std::nearbyint(weight / scale), -127.0, 127.0);
      different += integer != made.integers.as<int8_t>()[row * n + j];
      for (size_t k = j + 1; k < n; ++k)
        rest[row * n + k] -= (weight - scale * integer) / inverse[j][j] * inverse[j][k];
    }
    const std::vector<double> pivot = inverse[j];
    for (size_t i = j + 1; i < n; ++i) {
      const double factor = inverse[i][j] / pivot[j];
      for (size_t k = j; k < n; ++k) inverse[i][k] -= factor * pivot[k];
    }
  }
  EXPECT_LE(different, 8) << "of " << weights_.size() << "; what follows a tie may differ";
}

TEST_F(CalibratedWeights, OfIndependentInputsAreThoseOfRoundingAlone) {
  for (const float size : {1.0f, 0.01f, 300.0f}) {
    std::vector<float> rows(static_cast<size_t>(depth_ * depth_));
    for (int64_t k = 0; k < depth_; ++k) rows[static_cast<size_t>(k * depth_ + k)] = size;
    const InputStatistics inputs = statistics(rows);
    for (const int64_t group : {0, 32, 64, 128})
      EXPECT_EQ(quantise(group, &inputs).bytes(), quantise(group, nullptr).bytes()) << group << " " << size;
  }
}

TEST_F(CalibratedWeights, OfFewInputsOrNoneAreNoWorseThanRoundingAlone) {
  const auto row_of = [&](int64_t count) {
    std::vector<float> few(known_.begin(), known_.begin() + count * depth_);
    for (size_t k = 0; k < few.size(); k += 7) few[k] = 0;
    return few;
  };
  for (const int64_t group : {0, 64}) {
    const Quantised alone = quantise(group, nullptr);
    const InputStatistics none(depth_), zeros = statistics(std::vector<float>(static_cast<size_t>(depth_)));
    for (const InputStatistics* inputs : {&none, &zeros}) {
      const Quantised made = quantise(group, inputs);
      EXPECT_EQ(made.bytes(), alone.bytes());
      EXPECT_EQ(made.calibrated.outputs.share(), 0);
    }
    for (const int64_t count : {1, 3}) {
      const InputStatistics few = statistics(row_of(count));
      const Quantised made = quantise(group, &few);
      EXPECT_LE(made.calibrated.outputs.share(), made.calibrated.outputs_before.share());
      EXPECT_LT(error_of(made.values(depth_, group), row_of(count)),
                error_of(alone.values(depth_, group), row_of(count)));
    }
  }
  std::fill_n(weights_.begin(), depth_, 0.0f);
  const InputStatistics inputs = statistics(known_);
  for (const int64_t group : {0, 64})
    EXPECT_TRUE(std::isfinite(quantise(group, &inputs).calibrated.outputs.worst));
}

TEST_F(CalibratedWeights, RefuseWhatIsNotFinite) {
  for (const float bad : {NAN, INFINITY, 1e30f}) {
    std::vector<float> rows = known_;
    rows[3] = bad;
    const InputStatistics inputs = statistics(rows);
    for (const int64_t group : {0, 64}) {
      EXPECT_THROW(quantise(group, &inputs), Error) << bad;
    }
  }
  const InputStatistics inputs = statistics(known_);
  weights_[5] = NAN;
  for (const int64_t group : {0, 64}) {
    EXPECT_THROW(quantise(group, &inputs), Error);
  }
}

TEST_F(CalibratedWeights, AreTheSameOnEveryInstructionSetAndWithAnyTeam) {
  use(37, 333, 4);
  std::vector<std::string> expected;
  for (const CpuIsa isa :
       {CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16, CpuIsa::amx}) {
    if (isa > best_cpu_isa()) continue;
    set_cpu_isa(isa);
    for (const int threads : {1, 3}) {
      ThreadTeam team(threads);
      ctx_.team = &team;
      const InputStatistics inputs = statistics(known_);
      const std::vector<std::string> made = {quantise(0, &inputs).bytes(), quantise(32, &inputs).bytes()};
      if (expected.empty()) expected = made;
      EXPECT_EQ(made, expected) << name_of(isa) << ", " << threads << " threads";
      ctx_.team = &team_;
    }
  }
}

}  // namespace
}  // namespace shoal::ops
