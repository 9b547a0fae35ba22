#include "weights/convert.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

// The value of a 16-bit float by its definition: sign, exponent field, fraction (IEEE 754, and bf16).
double by_definition(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  const double significand = fraction + (exponent == 0 ? 0 : 1 << fraction_bits);
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits);
}

class EveryHalf : public testing::TestWithParam<DType> {};

TEST_P(EveryHalf, IsConvertedExactly) {
  std::vector<uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), uint16_t{0});
  const Tensor values = to_f32(TensorView::of(bits.data(), GetParam(), {65536}));
  for (size_t i = 0; i < bits.size(); ++i) {
    const double want = by_definition(bits[i], GetParam() == DType::f16 ? 5 : 8);
    const float got = values.as<float>()[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i;
    } else {
      ASSERT_EQ(double{got}, want) << i;
    }
    ASSERT_EQ(std::signbit(got), (i & 0x8000) != 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, EveryHalf, testing::Values(DType::f16, DType::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(ToF32, ATeamComputesTheSame) {
  constexpr int64_t kCount = 65536 * 3 + 17;
  std::vector<uint16_t> bits(kCount);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i * 40503);
  const TensorView stored = TensorView::of(bits.data(), DType::f16, {kCount});
  ThreadTeam team(3);
  std::vector<float> alone(kCount), shared(kCount);
  to_f32(stored, alone);
  to_f32(stored, shared, &team);
  for (size_t i = 0; i < alone.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(alone[i]), std::bit_cast<uint32_t>(shared[i])) << i;
}

TEST(ToF32, CopiesFloatsKeepsShapeAndRefusesOtherTypes) {
  std::vector<float> values = {1, -0.0f, 1e-40f, INFINITY, 5, 6};
  const Tensor copy = to_f32(TensorView::of(values.data(), DType::f32, {2, 3}));
  EXPECT_EQ(copy.shape(), (Shape{2, 3}));
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(copy.as<float>()[i]), std::bit_cast<uint32_t>(values[i]));
  std::vector<int32_t> integers = {1, 2};
  EXPECT_EQ(code_of([&] { to_f32(TensorView::of(integers.data(), DType::i32, {2})); }),
            ErrorCode::unsupported);
  EXPECT_EQ(to_f32(TensorView::of(values.data(), DType::f32, {0, 3})).elements(), 0);
}

}  // namespace
}  // namespace shoal::weights
