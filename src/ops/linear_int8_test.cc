// Products of 8-bit weights and inputs: exact integers for each group of 128 inputs, times scales.
#include "ops/device_state.h"
#include "ops/linear.h"
#include "ops/matrix_testing.h"

namespace shoal::ops {
namespace {

constexpr size_t kGroupOfInputs = 128;

struct Int8Size {
  int64_t rows, outputs, depth;
};

constexpr Int8Size kInt8Sizes[] = {{1, 1, 1},    {3, 17, 33},  {5, 320, 1030}, {65, 96, 128},
                                   {2, 33, 127}, {7, 16, 129}, {13, 48, 2},    {34, 100, 96},
                                   {4, 64, 512}, {6, 40, 300}, {12, 32, 256},  {11, 50, 640}};

// Values that share a scale, as the definition has them.
struct Rounded {
  std::vector<float> integers;
  float scale;
};

Rounded rounded_together(const float* values, size_t count) {
  float largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i]));
  Rounded rounded{.integers = {}, .scale = largest / 127};
  const float factor = largest > 0 ? 127 / largest : 0;
  for (size_t i = 0; i < count; ++i) rounded.integers.push_back(std::nearbyint(values[i] * factor));
  return rounded;
}

struct Int8Operands {
  Int8Size size;
  std::vector<float> x, w, bias;
};

Int8Operands random_int8_operands(Int8Size size) {
  const auto seed = static_cast<unsigned>(size.rows * 7 + size.outputs * 3 + size.depth);
  return {size, random_values(size.rows * size.depth, seed),
          random_values(size.outputs * size.depth, seed + 1), random_values(size.outputs, seed + 2)};
}

// The value of each output, and a bound: `groups` rounded sums, and as much as two scales and a bias add.
struct Expected {
  ref::Values values, bounds;
};

Expected expected_of(const Int8Operands& o) {
  Expected expected;
  const auto depth = static_cast<size_t>(o.size.depth);
  for (int64_t row = 0; row < o.size.rows; ++row) {
    for (int64_t n = 0; n < o.size.outputs; ++n) {
      const Rounded w = rounded_together(&o.w[static_cast<size_t>(n) * depth], depth);
      double sum = 0, magnitude = 0;
      for (size_t begin = 0; begin < depth; begin += kGroupOfInputs) {
        const size_t count = std::min(kGroupOfInputs, depth - begin);
        const Rounded x = rounded_together(&o.x[static_cast<size_t>(row) * depth + begin], count);
        double product = 0;
        for (size_t i = 0; i < count; ++i) product += w.integers[begin + i] * x.integers[i];
        sum += product * x.scale * w.scale;
        magnitude += std::abs(product * x.scale * w.scale);
      }
      const double bias = o.bias.empty() ? 0 : o.bias[static_cast<size_t>(n)];
      const auto groups = static_cast<double>((depth + kGroupOfInputs - 1) / kGroupOfInputs);
      expected.values.push_back(sum + bias);
      expected.bounds.push_back((groups + 4) * kUnit * (magnitude + std::abs(bias)) + 1e-30);
    }
  }
  return expected;
}

class Int8Linear : public testing::TestWithParam<CpuIsa>, protected MatrixFixture {
 protected:
  void SetUp() override {
    if (GetParam() > best_cpu_isa()) GTEST_SKIP() << "this CPU has no " << name_of(GetParam());
    set_cpu_isa(GetParam());
  }

  std::vector<float> run(Int8Operands& o, const Epilogue& epilogue = {}, std::vector<float> y = {}) {
    const PackedMatrix weight = pack(o.w, {o.size.outputs, o.size.depth}, o.bias, DType::i8);
    y.resize(static_cast<size_t>(o.size.rows * o.size.outputs));
    linear(ctx_, view_of(o.x, {o.size.rows, o.size.depth}), weight, view_of(y, {o.size.rows, o.size.outputs}),
           epilogue);
    return y;
  }
};

TEST_P(Int8Linear, MatchesItsDefinitionAtAwkwardSizes) {
  for (const Int8Size size : kInt8Sizes) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.outputs << " x " << size.depth);
    Int8Operands o = random_int8_operands(size);
    if (size.outputs == 17) o.bias.clear();
    const Expected expected = expected_of(o);
    expect_close(run(o), expected.values, expected.bounds);
  }
}

TEST_P(Int8Linear, HasTheSameBitsOnEveryInstructionSet) {
  for (const Int8Size size : kInt8Sizes) {
    Int8Operands o = random_int8_operands(size);
    const std::vector<float> here = run(o);
    set_cpu_isa(CpuIsa::portable);
    expect_same_bits(here, run(o));
    set_cpu_isa(GetParam());
  }
}

TEST_P(Int8Linear, ARowIsTheSameAloneAndInABatch) {
  Int8Operands all = random_int8_operands({29, 70, 390});
  const std::vector<float> together = run(all);
  for (int64_t row = 0; row < 29; ++row) {
    Int8Operands alone = all;
    alone.size.rows = 1;
    alone.x.assign(all.x.begin() + row * 390, all.x.begin() + (row + 1) * 390);
    expect_same_bits(run(alone), {together.begin() + row * 70, together.begin() + (row + 1) * 70});
  }
}

// Each weight is at most half of its scale off, each input half of its group's.
TEST_P(Int8Linear, IsAsNearToTheExactProductAsRoundingAllows) {
  const Int8Operands o = [] {
    Int8Operands made = random_int8_operands({9, 80, 700});
    made.bias.clear();
    for (size_t i = 0; i < made.x.size(); i += 50) made.x[i] *= 100;  // an input far above its neighbours
    return made;
  }();
  Int8Operands copy = o;
  const std::vector<float> got = run(copy);
  ref::Values want, bounds;
  for (size_t row = 0; row < 9; ++row) {
    for (size_t n = 0; n < 80; ++n) {
      const float w_scale = rounded_together(&o.w[n * 700], 700).scale;
      double sum = 0, bound = 0;
      for (size_t k = 0; k < 700; ++k) {
        const size_t begin = k / kGroupOfInputs * kGroupOfInputs;
        const float x_scale =
            rounded_together(&o.x[row * 700 + begin], std::min(kGroupOfInputs, 700 - begin)).scale;
        const double x = o.x[row * 700 + k], w = o.w[n * 700 + k];
        sum += x * w;
        bound += std::abs(x) * w_scale / 2 + std::abs(w) * x_scale / 2 + w_scale * x_scale / 4;
      }
      want.push_back(sum);
      bounds.push_back(bound * (1 + 1e-5));
    }
  }
  expect_close(got, want, bounds);
}

TEST_P(Int8Linear, AddsToWhatIsThereAndScales) {
  Int8Operands o = random_int8_operands({4, 35, 200});
  std::vector<float> scale = random_values(35, 8), start = random_values(4 * 35, 9);
  const Expected product = expected_of(o);
  ref::Values want, bounds;
  for (size_t i = 0; i < product.values.size(); ++i) {
    const double s = scale[i % 35];
    want.push_back(start[i] + s * product.values[i]);
    bounds.push_back(std::abs(s) * product.bounds[i] +
                     2 * kUnit * (std::abs(start[i]) + std::abs(s * product.values[i])));
  }
  expect_close(run(o, {.accumulate = true, .scale = view_of(scale, {35})}, start), want, bounds);
}

TEST_P(Int8Linear, SwigluIsThatOfBothProducts) {
  Int8Operands gate = random_int8_operands({29, 40, 260}), up = random_int8_operands({29, 40, 261});
  up.size = gate.size, up.x = gate.x, up.w.resize(gate.w.size());
  gate.bias.clear(), up.bias.clear();
  for (float& w : gate.w) w *= 0.1f;
  const Shape shape{40, 260};
  const PackedMatrix packed = pack_gate_up(ctx_, view_of(gate.w, shape), view_of(up.w, shape), DType::i8);
  std::vector<float> y(29 * 40);
  linear_swiglu(ctx_, view_of(gate.x, {29, 260}), packed, view_of(y, {29, 40}));
  const Expected g = expected_of(gate), u = expected_of(up);
  ref::Values want, bounds;
  for (size_t i = 0; i < y.size(); ++i) {
    want.push_back(ref::silu(g.values[i]) * u.values[i]);
    // |silu'| < 1.1; exp, sum, quotient and product add at most 6 units of |g u|.
    bounds.push_back(1.1 * g.bounds[i] * (std::abs(u.values[i]) + u.bounds[i]) +
                     std::abs(g.values[i]) * u.bounds[i] + 6 * kUnit * std::abs(g.values[i] * u.values[i]) +
                     1e-30);
  }
  expect_close(y, want, bounds);
}

TEST_P(Int8Linear, ARowThatIsNotFiniteShowsItAndItsNeighboursDoNot) {
  Int8Operands o = random_int8_operands({3, 20, 300});
  const std::vector<float> before = run(o);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    o.x[300 + 140] = bad;
    const std::vector<float> got = run(o);
    for (size_t n = 0; n < 20; ++n) EXPECT_FALSE(std::isfinite(got[20 + n])) << bad << ", output " << n;
    expect_same_bits({got.begin(), got.begin() + 20}, {before.begin(), before.begin() + 20});
    expect_same_bits({got.begin() + 40, got.end()}, {before.begin() + 40, before.end()});
  }
}

TEST_P(Int8Linear, ZerosGiveTheBias) {
  Int8Operands o = random_int8_operands({2, 18, 130});
  std::fill(o.x.begin(), o.x.begin() + 130, 0.0f);
  std::fill(o.w.begin(), o.w.begin() + 130, 0.0f);
  const std::vector<float> y = run(o);
  for (size_t n = 0; n < 18; ++n) EXPECT_EQ(y[n], o.bias[n]);
  EXPECT_EQ(y[18], o.bias[0]);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Int8Linear,
                         testing::Values(CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16,
                                         CpuIsa::amx),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

class Int8Packing : public testing::Test, protected MatrixFixture {};

TEST_F(Int8Packing, TakesAByteAWeightAndAScaleAnOutput) {
  std::vector<float> w = random_values(64 * 256, 1), none;
  const PackedMatrix packed = pack(w, {64, 256}, none, DType::i8);
  EXPECT_EQ(packed.bytes(), 64 * 256 + 64 * 4);
  const Tensor sized = Tensor::sized(DType::f32, {64, 256});
  EXPECT_EQ(pack_matrix(ctx_, sized, {}, DType::i8).bytes(), packed.bytes());
}

TEST_F(Int8Packing, RefusesWhatHasNoKernel) {
  std::vector<float> w = random_values(8 * 4 * 3, 1);
  EXPECT_FALSE(multiplies({DeviceKind::cuda, 0}, DType::i8));
  EXPECT_FALSE(multiplies({}, MatrixFormat(DType::i8, DType::f32)));
  EXPECT_THROW(pack_conv1d(ctx_, view_of(w, {8, 4, 3}), {}, DType::i8), Error);
}

}  // namespace
}  // namespace shoal::ops
