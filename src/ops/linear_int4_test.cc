// Products of 4-bit weights and 8-bit inputs: exact integers for each group of weights, times scales.
#include <array>
#include <cmath>

#include "ops/device_state.h"
#include "ops/linear.h"
#include "ops/matrix_testing.h"
#include "ops/round_weights.h"

namespace shoal::ops {
namespace {

struct Int4Case {
  CpuIsa isa;
  int64_t group;
};

struct Int4Size {
  int64_t rows, outputs, depth;
};

constexpr Int4Size kInt4Sizes[] = {{1, 1, 1},    {3, 17, 33},  {5, 320, 1030}, {65, 96, 128},
                                   {2, 33, 127}, {7, 16, 129}, {13, 48, 2},    {34, 100, 96},
                                   {4, 64, 512}, {6, 40, 300}, {12, 32, 256},  {11, 50, 640}};

// A row of inputs as the products see it: integers and the scale of each.
struct Int4Inputs {
  ref::Values integers, scales;
};

Int4Inputs int4_inputs(const float* x, size_t depth) {
  Int4Inputs inputs;
  for (size_t begin = 0; begin < depth; begin += 128) {
    const size_t end = std::min(depth, begin + 128);
    float largest = 0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
    const float factor = largest > 0 ? 127 / largest : 0;
    for (size_t i = begin; i < end; ++i) {
      inputs.integers.push_back(std::nearbyint(x[i] * factor));
      inputs.scales.push_back(largest / 127);
    }
  }
  return inputs;
}

struct Int4Operands {
  Int4Size size;
  std::vector<float> x, w, bias;
};

Int4Operands random_int4_operands(Int4Size size) {
  const auto seed = static_cast<unsigned>(size.rows * 7 + size.outputs * 3 + size.depth);
  Int4Operands made{size, random_values(size.rows * size.depth, seed),
                    random_values(size.outputs * size.depth, seed + 1),
                    random_values(size.outputs, seed + 2)};
  for (float& w : made.w) w += 0.3f;  // a minimum far from minus the maximum
  return made;
}

// What round_to_int4 makes of weights, in memory of its own.
struct Int4Weights {
  Int4Weights(const std::vector<float>& w, int64_t outputs, int64_t depth, int64_t group)
      : nibbles(DType::u8, {outputs, (depth + 1) / 2}),
        scales(DType::bf16, {outputs, (depth + group - 1) / group}),
        minima(DType::bf16, scales.shape()) {
    ThreadTeam team(2);
    std::vector<float> copy = w;
    error = round_to_int4(team, view_of(copy, {outputs, depth}), group, {nibbles, scales, minima});
    const auto bytes = nibbles.span<uint8_t>();
    ref::Values wide_scales, wide_minima;
    for (const Bf16 scale : scales.span<Bf16>()) wide_scales.push_back(bf16_to_float(scale));
    for (const Bf16 minimum : minima.span<Bf16>()) wide_minima.push_back(bf16_to_float(minimum));
    values = ref::int4_weights({bytes.begin(), bytes.end()}, wide_scales, wide_minima, depth, group);
  }

  Tensor nibbles, scales, minima;
  RoundingError error;
  ref::Values values;
};

// The value of each output, and a bound: two rounded sums and a rounded factor of each group, and the bias.
struct Int4Expected {
  ref::Values values, bounds;
};

Int4Expected int4_expected(const Int4Operands& o, int64_t group) {
  Int4Expected expected;
  const auto depth = static_cast<size_t>(o.size.depth);
  const ref::Values w = Int4Weights(o.w, o.size.outputs, o.size.depth, group).values;
  for (size_t row = 0; row < static_cast<size_t>(o.size.rows); ++row) {
    const Int4Inputs x = int4_inputs(&o.x[row * depth], depth);
    for (size_t n = 0; n < static_cast<size_t>(o.size.outputs); ++n) {
      double sum = 0, magnitude = 0;
      for (size_t k = 0; k < depth; ++k) {
        const double product = w[n * depth + k] * x.integers[k] * x.scales[k];
        sum += product;
        // Scale times integer and minimum apart may be larger than the weight: 15 scales, of 4 times the
        // largest.
        magnitude += 8 * 4.5 * std::abs(x.integers[k] * x.scales[k]);
      }
      const double bias = o.bias.empty() ? 0 : o.bias[n];
      const auto groups = static_cast<double>((o.size.depth + group - 1) / group);
      expected.values.push_back(sum + bias);
      expected.bounds.push_back((2 * groups + 4) * kUnit * (magnitude + std::abs(bias)) + 1e-30);
    }
  }
  return expected;
}

class Int4Linear : public testing::TestWithParam<Int4Case>, protected MatrixFixture {
 protected:
  void SetUp() override {
    if (GetParam().isa > best_cpu_isa()) GTEST_SKIP() << "this CPU has no " << name_of(GetParam().isa);
    set_cpu_isa(GetParam().isa);
  }
  static int64_t group() { return GetParam().group; }
  static MatrixFormat format() { return {DType::u4, DType::i8, group()}; }

  std::vector<float> run(Int4Operands& o, const Epilogue& epilogue = {}, std::vector<float> y = {}) {
    const PackedMatrix weight =
        pack_matrix(ctx_, view_of(o.w, {o.size.outputs, o.size.depth}), bias_view(o.bias), format());
    y.resize(static_cast<size_t>(o.size.rows * o.size.outputs));
    linear(ctx_, view_of(o.x, {o.size.rows, o.size.depth}), weight, view_of(y, {o.size.rows, o.size.outputs}),
           epilogue);
    return y;
  }
};

TEST_P(Int4Linear, MatchesItsDefinitionAtAwkwardSizes) {
  for (const Int4Size size : kInt4Sizes) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.outputs << " x " << size.depth);
    Int4Operands o = random_int4_operands(size);
    if (size.outputs == 17) o.bias.clear();
    const Int4Expected expected = int4_expected(o, group());
    expect_close(run(o), expected.values, expected.bounds);
  }
}

TEST_P(Int4Linear, HasTheSameBitsOnEveryInstructionSet) {
  for (const Int4Size size : kInt4Sizes) {
    Int4Operands o = random_int4_operands(size);
    const std::vector<float> here = run(o);
    set_cpu_isa(CpuIsa::portable);
    expect_same_bits(here, run(o));
    set_cpu_isa(GetParam().isa);
  }
}

// Integers of 15 times inputs of 127: the largest sums.
TEST_P(Int4Linear, HoldsTheLargestSums) {
  Int4Operands o{.size = {4, 32, 256}, .x = {}, .w = {}, .bias = {}};
  for (int64_t i = 0; i < 4 * 256; ++i) o.x.push_back(i % 512 < 256 ? 127.0f : -127.0f);
  for (int64_t i = 0; i < 32 * 256; ++i) o.w.push_back(i % 32 == 31 ? 0.0f : 15.0f);
  const std::vector<float> y = run(o);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], (i / 32 % 2 == 0 ? 1.0f : -1.0f) * 127 * 15 * 31 * 8) << i;
}

TEST_P(Int4Linear, ARowIsTheSameAloneAndInABatch) {
  Int4Operands all = random_int4_operands({29, 70, 390});
  const std::vector<float> together = run(all);
  for (int64_t row = 0; row < 29; ++row) {
    Int4Operands alone = all;
    alone.size.rows = 1;
    alone.x.assign(all.x.begin() + row * 390, all.x.begin() + (row + 1) * 390);
    expect_same_bits(run(alone), {together.begin() + row * 70, together.begin() + (row + 1) * 70});
  }
}

TEST_P(Int4Linear, AddsToWhatIsThereAndScales) {
  Int4Operands o = random_int4_operands({4, 35, 200});
  std::vector<float> scale = random_values(35, 8), start = random_values(4 * 35, 9);
  const Int4Expected product = int4_expected(o, group());
  ref::Values want, bounds;
  for (size_t i = 0; i < product.values.size(); ++i) {
    const double s = scale[i % 35];
    want.push_back(start[i] + s * product.values[i]);
    bounds.push_back(std::abs(s) * product.bounds[i] +
                     2 * kUnit * (std::abs(start[i]) + std::abs(s * product.values[i])));
  }
  expect_close(run(o, {.accumulate = true, .scale = view_of(scale, {35})}, start), want, bounds);
}

TEST_P(Int4Linear, SwigluIsThatOfBothProducts) {
  Int4Operands gate = random_int4_operands({29, 40, 260}), up = random_int4_operands({29, 40, 261});
  up.size = gate.size, up.x = gate.x, up.w.resize(gate.w.size());
  gate.bias.clear(), up.bias.clear();
  for (float& w : gate.w) w *= 0.1f;
  const Shape shape{40, 260};
  const PackedMatrix packed = pack_gate_up(ctx_, view_of(gate.w, shape), view_of(up.w, shape), format());
  std::vector<float> y(29 * 40);
  linear_swiglu(ctx_, view_of(gate.x, {29, 260}), packed, view_of(y, {29, 40}));
  const Int4Expected g = int4_expected(gate, group()), u = int4_expected(up, group());
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

TEST_P(Int4Linear, ARowThatIsNotFiniteShowsItAndItsNeighboursDoNot) {
  Int4Operands o = random_int4_operands({3, 20, 300});
  const std::vector<float> before = run(o);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    o.x[300 + 140] = bad;
    const std::vector<float> got = run(o);
    for (size_t n = 0; n < 20; ++n) EXPECT_FALSE(std::isfinite(got[20 + n])) << bad << ", output " << n;
    expect_same_bits({got.begin(), got.begin() + 20}, {before.begin(), before.begin() + 20});
    expect_same_bits({got.begin() + 40, got.end()}, {before.begin() + 40, before.end()});
  }
}

TEST_P(Int4Linear, AWeightThatIsNotFiniteShowsInItsOutputAlone) {
  Int4Operands o = random_int4_operands({2, 20, 300});
  const std::vector<float> before = run(o);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    o.w[7 * 300 + 299] = bad;
    const std::vector<float> got = run(o);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(i % 20 == 7 ? !std::isfinite(got[i]) : got[i] == before[i], true) << bad << ", " << i;
  }
}

TEST_P(Int4Linear, PacksWhatWasRoundedAheadToTheSameBits) {
  for (const Int4Size size : kInt4Sizes) {
    Int4Operands o = random_int4_operands(size);
    const Int4Weights ahead(o.w, size.outputs, size.depth, group());
    const StoredMatrix now = view_of(o.w, {size.outputs, size.depth}),
                       stored{ahead.nibbles, ahead.scales, ahead.minima, size.depth};
    const auto packed = [&](const StoredMatrix& matrix) {
      std::string bytes;
      for (const PackedMatrix& p :
           {pack_matrix(ctx_, matrix, {}, format()), pack_gate_up(ctx_, matrix, matrix, format()),
            pack_stacked(ctx_, std::array{matrix, matrix}, {}, format())})
        bytes.append(static_cast<const char*>(p.storage.view().data()), static_cast<size_t>(p.bytes()));
      return bytes;
    };
    EXPECT_EQ(packed(stored), packed(now)) << size.depth;
    EXPECT_THROW(pack_matrix(ctx_, stored, {}, DType::i8), Error);
    EXPECT_THROW(pack_stacked(ctx_, std::array{stored, now}, {}, format()), Error);
  }
}

TEST_P(Int4Linear, TakesHalfAByteAWeightAndFourBytesAGroup) {
  const Tensor sized = Tensor::sized(DType::f32, {64, 256});
  std::vector<float> w = random_values(64 * 256, 1);
  const int64_t expected = 64 * 256 / 2 + 64 * 256 / group() * 4;
  EXPECT_EQ(pack_matrix(ctx_, view_of(w, {64, 256}), {}, format()).bytes(), expected);
  EXPECT_EQ(pack_matrix(ctx_, sized, {}, format()).bytes(), expected);
}

std::vector<Int4Case> int4_cases() {
  std::vector<Int4Case> cases;
  for (const CpuIsa isa : {CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16, CpuIsa::amx})
    for (const int64_t group : {32, 64, 128}) cases.push_back({isa, group});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Int4Linear, testing::ValuesIn(int4_cases()), [](const auto& tested) {
  return concat(name_of(tested.param.isa), "_", tested.param.group);
});

TEST(Int4Packing, RefusesWhatHasNoKernel) {
  EXPECT_FALSE(multiplies({DeviceKind::cuda, 0}, MatrixFormat(DType::u4, DType::i8, 64)));
  for (const int64_t group : {0, -32, 16, 48, 256})
    EXPECT_FALSE(multiplies({}, MatrixFormat(DType::u4, DType::i8, group))) << group;
  EXPECT_FALSE(multiplies({}, MatrixFormat(DType::u4, DType::f32, 64)));
}

// By definition, in double: every scale and minimum of a fine grid.
double least_square(const std::vector<float>& w) {
  const auto [low, high] = std::ranges::minmax(w);
  double best = 1e300;
  for (int a = 0; a < 60; ++a) {
    for (int b = 0; b < 60; ++b) {
      const double minimum = low + (high - low) * a * 0.008,
                   scale = (high - (high - low) * b * 0.008 - minimum) / 15;
      double sum = 0;
      for (const float v : w) {
        const double q = std::clamp(std::nearbyint((v - minimum) / scale), 0.0, 15.0);
        sum += (v - minimum - scale * q) * (v - minimum - scale * q);
      }
      best = std::min(best, sum);
    }
  }
  return best;
}

TEST(Int4Search, ComesNearTheBestScaleAndMinimum) {
  for (const int64_t group : {32, 64, 128}) {
    double found = 0, least = 0;
    for (unsigned seed = 0; seed < 24; ++seed) {
      std::vector<float> w = random_values(group, seed);
      for (float& v : w) v = seed % 3 == 0 ? v : seed % 3 == 1 ? v * v * v : v + 2;
      const Int4Weights made(w, 1, group, group);
      found += made.error.difference, least += least_square(w);
    }
    EXPECT_LT(found, 1.06 * least) << group;
  }
}

TEST(Int4Search, TellsHowFarTheWeightsAreAndRefusesThoseThatAreNotFinite) {
  std::vector<float> w = random_values(2 * 70, 5);
  const Int4Weights made(w, 2, 70, 32);
  double difference = 0, weights = 0, worst = 0;
  for (size_t row = 0; row < 2; ++row) {
    double of_row = 0, size = 0;
    for (size_t k = row * 70; k < (row + 1) * 70; ++k)
      of_row += std::pow(w[k] - made.values[k], 2), size += double{w[k]} * w[k];
    worst = std::max(worst, std::sqrt(of_row / size)), difference += of_row, weights += size;
  }
  EXPECT_NEAR(made.error.share(), std::sqrt(difference / weights), 1e-12);
  EXPECT_NEAR(made.error.worst, worst, 1e-12);
  EXPECT_EQ(Int4Weights({1.5f, 1.5f, 1.5f}, 1, 3, 32).values, ref::Values(3, 1.5));
  EXPECT_EQ(Int4Weights({0, 0, 0}, 1, 3, 32).error.share(), 0);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    w[90] = bad;
    EXPECT_THROW(Int4Weights(w, 2, 70, 32), Error) << bad;
  }
}

}  // namespace
}  // namespace shoal::ops
