#include "ops/cpu/vector_kernels.h"

#include <cmath>

#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
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
  const Floats edges = apply(vector_kernels().exp_nonpositive, {-0.0f, -87.1f, -1e30f, -kInfinity, kNan});
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

TEST_P(VectorKernelsTest, MaximumAndSelectionMatchALoop) {
  for (const int64_t n : {1, 7, 16, 31, 1000}) {
    Floats x = random_values(n, static_cast<unsigned>(n));
    bool has_nan = true;
    EXPECT_EQ(vector_kernels().max(x.data(), n, &has_nan), *std::max_element(x.begin(), x.end()));
    EXPECT_FALSE(has_nan);
    std::vector<int32_t> want, got(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] >= 0.5f) want.push_back(static_cast<int32_t>(i));
    got.resize(static_cast<size_t>(vector_kernels().select_at_least(x.data(), 0.5f, got.data(), n)));
    EXPECT_EQ(got, want);
    x[x.size() / 2] = kNan;
    vector_kernels().max(x.data(), n, &has_nan);
    EXPECT_TRUE(has_nan);
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
