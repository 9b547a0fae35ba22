#include "ops/cpu/kernels/vector_kernels.h"

#include <cmath>
#include <numeric>

#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr double kUlp = 0x1p-23;

// Evenly spaced, both ends included.
Floats ramp(float from, float to, int64_t count) {
  Floats values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(from + (to - from) * static_cast<float>(i) / static_cast<float>(count - 1));
  return values;
}

class VectorKernelsTest : public IsaTest {
 protected:
  using Unary = void (*)(const float*, float*, int64_t);
  static Floats apply(Unary kernel, const Floats& x) {
    Floats y(x.size());
    kernel(x.data(), y.data(), static_cast<int64_t>(x.size()));
    return y;
  }
};

TEST_P(VectorKernelsTest, ExpIsWithinAnUlp) {
  const Floats x = ramp(-87, 0, 100'003);
  const Floats y = apply(vector_kernels().exp_nonpositive, x);
  ref::Values want, bound;
  for (const float v : x) {
    want.push_back(std::exp(static_cast<double>(v)));
    bound.push_back(0.75 * kUlp * want.back());  // polynomial 3e-9, argument and final rounding
  }
  expect_close(y, want, bound);
  const Floats edges =
      apply(vector_kernels().exp_nonpositive, {-0.0f, -87.1f, -1e30f, -kInfinity, kNotANumber});
  EXPECT_EQ(edges[0], 1.0f);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(edges[static_cast<size_t>(i)], 0.0f);
  EXPECT_TRUE(std::isnan(edges[4]));
}

TEST_P(VectorKernelsTest, SwigluIsWithinThreeUlps) {
  const Floats gate = ramp(-80, 80, 50'001), up = random_values(50'001, 1);
  Floats y(gate.size());
  vector_kernels().swiglu(gate.data(), up.data(), y.data(), static_cast<int64_t>(y.size()));
  ref::Values want, bound;
  for (size_t i = 0; i < gate.size(); ++i) {
    want.push_back(ref::silu(gate[i]) * up[i]);
    bound.push_back(2.6 * kUlp * std::abs(want.back()) + 1e-37);  // exp 0.7, four more roundings of half
  }
  expect_close(y, want, bound);
  Floats edge(2);
  const Floats extremes = {-1e30f, 1e30f}, ones = {1, 1};
  vector_kernels().swiglu(extremes.data(), ones.data(), edge.data(), 2);
  EXPECT_EQ(edge[0], 0.0f);
  EXPECT_EQ(edge[1], 1e30f);
}

TEST_P(VectorKernelsTest, GeluIsExactToTwoTenMillionths) {
  const Floats x = ramp(-20, 20, 100'001);
  const Floats y = apply(vector_kernels().gelu, x);
  ref::Values want, bound;
  for (const float v : x) {
    want.push_back(0.5 * v * std::erfc(-v / std::sqrt(2.0)));
    bound.push_back(2e-7 * std::max(1.0, std::abs(want.back())));
  }
  expect_close(y, want, bound);
}

TEST_P(VectorKernelsTest, GeluByTanhIsExactToTwoTenMillionths) {
  const Floats x = ramp(-20, 20, 100'001);
  const Floats y = apply(vector_kernels().gelu_tanh, x);
  ref::Values want, bound;
  for (const float v : x) {
    want.push_back(ref::gelu_tanh(v));
    bound.push_back(2e-7 * std::max(1.0, std::abs(want.back())));
  }
  expect_close(y, want, bound);
  const Floats edges = apply(vector_kernels().gelu_tanh, {-0.0f, -3e38f, 3e38f, kInfinity, kNotANumber});
  EXPECT_EQ(edges[0], 0.0f);
  EXPECT_EQ(edges[1], 0.0f);
  EXPECT_EQ(edges[2], 3e38f);
  EXPECT_EQ(edges[3], kInfinity);
  EXPECT_TRUE(std::isnan(edges[4]));
}

TEST_P(VectorKernelsTest, SnakeReducesArgumentsOfAnySize) {
  for (const float reach : {1.0f, 30.0f, 1e3f, 1e4f, 65536.0f, 1e6f, 1e15f}) {
    for (const int64_t n : {int64_t{1}, int64_t{15}, int64_t{16}, int64_t{33}, int64_t{10'007}}) {
      const Floats x = random_values(n, static_cast<unsigned>(n), reach);
      Floats alpha = random_values(n, 7);
      for (float& a : alpha) a = std::abs(a) + 0.05f;
      Floats y(x.size());
      vector_kernels().snake(x.data(), alpha.data(), y.data(), n);
      ref::Values want, bound;
      for (size_t i = 0; i < x.size(); ++i) {
        const double s = std::sin(static_cast<double>(alpha[i] * x[i]));
        want.push_back(x[i] + s * s / (alpha[i] + 1e-9));
        bound.push_back(2 * kUnit * std::abs(want.back()) + (1.5e-7 + 4 * kUnit) / alpha[i]);
      }
      expect_close(y, want, bound);
    }
  }
}

TEST_P(VectorKernelsTest, Bf16RoundsToNearestEvenInEveryLane) {
  Floats x = random_values(1003, 3, 1e3f);
  for (const uint32_t bits : {0x3f808000u, 0x3f818000u, 0x3f808001u, 0x7f7fffffu, 0x7f800000u, 0xff800000u,
                              0x00000001u, 0x00018000u, 0x80000000u, 0x7f800001u, 0xffffffffu})
    x.push_back(std::bit_cast<float>(bits));
  for (const size_t skip : {0u, 1u, 5u}) {
    const int64_t n = static_cast<int64_t>(x.size() - skip);
    std::vector<Bf16> y(x.size()), guard(1, 0xabcd);
    vector_kernels().round_bf16(x.data() + skip, y.data(), n);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(y[static_cast<size_t>(i)], float_to_bf16(x[static_cast<size_t>(i) + skip])) << i;
    Floats back(y.size(), 1.0f);
    vector_kernels().widen_bf16(y.data(), back.data(), n);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(back[static_cast<size_t>(i)]),
                uint32_t{y[static_cast<size_t>(i)]} << 16);
  }
}

TEST_P(VectorKernelsTest, IntegersAreTheNearestOfTheirScale) {
  for (const int64_t n : {1, 15, 16, 64, 100, 128}) {
    Floats x = random_values(n, static_cast<unsigned>(n), 3);
    std::vector<int8_t> y(x.size() + 1, 77);
    const float scale = vector_kernels().round_i8(x.data(), y.data(), n);
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::abs(v));
    EXPECT_EQ(scale, largest / 127);
    float sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y[i], std::nearbyint(x[i] * (127 / largest)));
      sum += y[i];
    }
    EXPECT_EQ(vector_kernels().sum_i8(y.data(), n), sum);
    EXPECT_EQ(y.back(), 77);
    for (const float bad : {kNotANumber, kInfinity, -kInfinity}) {
      x.back() = bad;
      EXPECT_TRUE(std::isnan(vector_kernels().round_i8(x.data(), y.data(), n)));
    }
    x.assign(x.size(), -0.0f);
    EXPECT_EQ(vector_kernels().round_i8(x.data(), y.data(), n), 0.0f);
    EXPECT_EQ(vector_kernels().sum_i8(y.data(), n), 0.0f);
  }
}

TEST_P(VectorKernelsTest, SumsAreFinishedStepByStep) {
  constexpr int64_t kRows = 3, kStride = 64, kWidth = 70;
  const Floats bias = random_values(kStride, 2), scale = random_values(kStride, 3);
  for (const int64_t count : {1, 16, 20, 64})
    for (const bool biased : {false, true})
      for (const bool scaled : {false, true})
        for (const bool accumulate : {false, true}) {
          const Floats sums = random_values(kRows * kStride, 1);
          Floats y = random_values(kRows * kWidth, 4), want = y;
          for (int64_t row = 0; row < kRows; ++row)
            for (int64_t i = 0; i < count; ++i) {
              float v = sums[static_cast<size_t>(row * kStride + i)];
              if (biased) v += bias[static_cast<size_t>(i)];
              if (scaled) v *= scale[static_cast<size_t>(i)];
              float& at = want[static_cast<size_t>(row * kWidth + i)];
              at = accumulate ? at + v : v;
            }
          vector_kernels().finish_rows({.sums = sums.data(),
                                        .sums_stride = kStride,
                                        .rows = kRows,
                                        .count = count,
                                        .bias = biased ? bias.data() : nullptr,
                                        .scale = scaled ? scale.data() : nullptr,
                                        .accumulate = accumulate,
                                        .y = y.data(),
                                        .y_stride = kWidth});
          EXPECT_EQ(y, want) << count << biased << scaled << accumulate;
        }
}

TEST_P(VectorKernelsTest, TailsStayWithinTheirRows) {
  for (int64_t n = 0; n < 40; ++n) {
    const Floats x = random_values(n + 1, 4);
    Floats y(static_cast<size_t>(n) + 1, 77.0f);
    vector_kernels().gelu(x.data(), y.data(), n);
    EXPECT_EQ(y.back(), 77.0f);
    std::vector<Bf16> narrow(static_cast<size_t>(n) + 1, 77);
    vector_kernels().snake_bf16(x.data(), x.data(), narrow.data(), n);
    EXPECT_EQ(narrow.back(), 77);
  }
}

TEST_P(VectorKernelsTest, MaximumMatchesALoop) {
  for (const int64_t n : {1, 7, 16, 31, 1000}) {
    Floats x = random_values(n, static_cast<unsigned>(n));
    for (float& v : x) v -= 10;  // what pads the last piece must not win
    bool has_nan = true;
    EXPECT_EQ(vector_kernels().max(x.data(), n, &has_nan), *std::max_element(x.begin(), x.end()));
    EXPECT_FALSE(has_nan);
    x[x.size() / 2] = kNotANumber;
    vector_kernels().max(x.data(), n, &has_nan);
    EXPECT_TRUE(has_nan);
  }
}

// Logits with ties, with none, some or all above the pivots below, and a mask.
Floats few_values(int64_t n) {
  Floats x = random_values(n, static_cast<unsigned>(n) + 1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 7 == 3 ? -kInfinity : std::round(x[i]);
  return x;
}

constexpr float kPivots[] = {-kInfinity, -9, -1, -0.5f, -0.0f, 1, 9};

TEST_P(VectorKernelsTest, SumsAboveAPivotMatchALoop) {
  for (int64_t n = 0; n < 300; n += n < 40 ? 1 : 37) {
    Floats x = few_values(n), weights = random_values(n, 2);
    for (float& w : weights) w = std::round(w * 0x1p20f) * 0x1p-20f;  // sums are exact
    for (const float pivot : kPivots) {
      double weight = 0;
      int64_t count = 0;
      for (size_t i = 0; i < x.size(); ++i)
        if (x[i] > pivot) weight += weights[i], ++count;
      const Above got = vector_kernels().above({x.data(), weights.data(), n}, pivot);
      EXPECT_EQ(got.weight, weight);
      EXPECT_EQ(got.count, count);
      if (n > 0 && std::isfinite(pivot)) {
        EXPECT_EQ(got.equal, std::count(x.begin(), x.end(), pivot)) << n << ' ' << pivot;
      }
    }
  }
}

TEST_P(VectorKernelsTest, NarrowingKeepsTheOrder) {
  for (int64_t n = 0; n < 300; n += n < 40 ? 1 : 37) {
    for (const float low : kPivots)
      for (const float high : {-1.0f, 0.5f, 1.0f, kInfinity}) {
        Floats x = few_values(n), weights;
        for (int64_t i = 0; i < n; ++i) weights.push_back(static_cast<float>(i));
        Floats want, want_weights;
        for (size_t i = 0; i < x.size(); ++i)
          if (low < x[i] && x[i] < high) want.push_back(x[i]), want_weights.push_back(weights[i]);
        x.resize(x.size() + 16, 77), weights.resize(x.size(), 77);
        WeightedLogits entries{x.data(), weights.data(), n};
        const double weight = vector_kernels().narrow(entries, low, high, &entries);  // in place
        EXPECT_EQ(weight, std::accumulate(want_weights.begin(), want_weights.end(), 0.0));
        x.resize(static_cast<size_t>(entries.count)), weights.resize(x.size());
        ASSERT_EQ(x, want) << n << ' ' << low << ' ' << high;
        ASSERT_EQ(weights, want_weights);
      }
  }
}

TEST_P(VectorKernelsTest, BlocksMatchALoop) {
  for (int64_t n = 0; n < 300; n += n < 40 ? 1 : 37)
    for (const float least : kPivots) {
      if (least == -kInfinity) continue;
      const Floats x = few_values(n);
      std::vector<int32_t> want, got(x.size());
      for (int32_t i = 0; i < n; ++i)
        if (x[static_cast<size_t>(i)] >= least && (want.empty() || want.back() != i / 4))
          want.push_back(i / 4);
      got.resize(static_cast<size_t>(vector_kernels().blocks_at_least(x.data(), least, got.data(), n)));
      ASSERT_EQ(got, want) << n << ' ' << least;
    }
}

// Equal logits: the smallest noise wins, and of two equal ones the first.
TEST_P(VectorKernelsTest, TheSmallestNoiseWinsTheRace) {
  for (const int32_t block_count : {1, 2, 15, 16, 17, 40, 5000})
    for (const uint32_t first_block : {0u, 12'345u}) {
      const NoiseStream noise{0x123456789abcdef0u, 7, static_cast<uint32_t>(block_count)};
      const Floats x(static_cast<size_t>(8 * block_count), 3);
      std::vector<int32_t> blocks;
      for (int32_t i = 0; i < block_count; ++i) blocks.push_back(2 * i + 1);  // every other one
      int64_t want = 4;
      for (const int32_t block : blocks)
        for (int64_t id = 4 * block; id < 4 * block + 4; ++id) {
          const auto q = [&](int64_t i) {
            return exponential_noise(noise, 4 * first_block + static_cast<uint32_t>(i));
          };
          if (q(id) < q(want)) want = id;
        }
      const Race race{x.data(), 3, 3.5f, 0.8f, blocks.data(), block_count, noise, first_block};
      EXPECT_EQ(vector_kernels().race(race), want) << block_count;
    }
}

TEST_P(VectorKernelsTest, TheFirstOfTwoEqualNoisesWinsTheRace) {
  const Floats x(155'776, 1);
  std::vector<int32_t> blocks(x.size() / 4);
  std::iota(blocks.begin(), blocks.end(), 0);
  struct Tie {
    int64_t ids;
    uint32_t frame, first, second;
  };
  // Frames whose smallest noise two ids share (found by trying): of one block, of one vector, or far apart.
  for (const Tie& tie : {Tie{64, 49'561, 25, 27},
                         {64, 576'124, 38, 55},
                         {64, 1'483'501, 16, 60},
                         {155'776, 117, 74'246, 152'847},
                         {155'776, 239, 10'691, 121'307}}) {
    const NoiseStream noise{1, tie.frame, 0};
    ASSERT_EQ(exponential_noise(noise, tie.first), exponential_noise(noise, tie.second));
    const Race race{x.data(), 1, 1, 1, blocks.data(), tie.ids / 4, noise, 0};
    EXPECT_EQ(vector_kernels().race(race), tie.first);
  }
}

TEST_P(VectorKernelsTest, SoftmaxWeightsSumExactlyInAnyOrder) {
  const Floats x = random_values(20'001, 9, 5);
  bool has_nan = false;
  const float largest = vector_kernels().max(x.data(), 20'001, &has_nan);
  Floats weights(x.size());
  const double total = vector_kernels().softmax_weights(x.data(), largest, weights.data(), 20'001);
  double forward = 0, backward = 0;
  for (size_t i = 0; i < weights.size(); ++i) forward += weights[i];
  for (size_t i = weights.size(); i-- > 0;) backward += weights[i];
  EXPECT_EQ(forward, total);
  EXPECT_EQ(backward, total);
  for (size_t i = 0; i < x.size(); ++i) {
    const double e = std::exp(static_cast<double>(x[i]) - static_cast<double>(largest));
    ASSERT_NEAR(weights[i], e, 4 * kUlp * e * (1 + std::abs(x[i] - largest)) + 0x1p-36) << i;
  }
}

// Every kernel gives the bits of the portable one, also for values no model should meet.
TEST_P(VectorKernelsTest, EqualsThePortableKernelsBitForBit) {
  const VectorKernels& fast = vector_kernels();
  const VectorKernels& plain = cpu::vector_kernels_portable();
  for (const int64_t n : {1, 2, 16, 30, 64, 70, 128, 1022}) {
    Floats x = random_values(n, static_cast<unsigned>(n), 20), z = random_values(n, 5);
    if (n > 100) x[3] = kInfinity, x[60] = 1e-42f, x[77] = -1e7f, x[90] = 3e38f;
    const auto same = [&](auto call) {
      Floats a = z, b = z;
      call(fast, a.data());
      call(plain, b.data());
      for (size_t i = 0; i < a.size(); ++i)
        if (!std::isnan(a[i]) || !std::isnan(b[i])) {
          ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << n << " at " << i;
        }
    };
    same([&](const VectorKernels& k, float* y) { k.snake(x.data(), z.data(), y, n); });
    same([&](const VectorKernels& k, float* y) { k.swiglu(x.data(), z.data(), y, n); });
    same([&](const VectorKernels& k, float* y) { k.gelu(x.data(), y, n); });
    same([&](const VectorKernels& k, float* y) { k.gelu_tanh(x.data(), y, n); });
    same([&](const VectorKernels& k, float* y) { k.add(x.data(), y, n); });
    same([&](const VectorKernels& k, float* y) { k.divide(3.3f, y, n); });
    same([&](const VectorKernels& k, float* y) { k.rms_norm(z.data(), x.data(), 1e-6f, y, n); });
    same([&](const VectorKernels& k, float* y) { k.layer_norm(z.data(), x.data(), z.data(), 1e-6f, y, n); });
    if (n % 2 == 0) same([&](const VectorKernels& k, float* y) { k.rotate_pairs(x.data(), y, n); });
    Floats negative = x;
    for (float& v : negative) v = -std::abs(v);
    same([&](const VectorKernels& k, float* y) { k.exp_nonpositive(negative.data(), y, n); });
    same([&](const VectorKernels& k, float* y) { k.softmax_weights(negative.data(), 0, y, n); });
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, VectorKernelsTest, every_isa(), name_of_isa);

}  // namespace
}  // namespace shoal::ops
