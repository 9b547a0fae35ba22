#include "base/e4m3.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace shoal {
namespace {

// By the definition: 1.mmm * 2^(e - 7), or 0.mmm * 2^-6.
double defined(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double magnitude = exponent > 0 ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
  return bits & 0x80 ? -magnitude : magnitude;
}

TEST(E4m3, HasTheValuesOfItsDefinition) {
  for (int bits = 0; bits < 256; ++bits) {
    const float value = e4m3_to_float(static_cast<E4m3>(bits));
    if ((bits & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(is_nan_of_e4m3(static_cast<E4m3>(bits)));
      continue;
    }
    EXPECT_FALSE(is_nan_of_e4m3(static_cast<E4m3>(bits)));
    EXPECT_EQ(value, defined(bits)) << bits;
    EXPECT_EQ(std::signbit(value), bits >= 128);
    EXPECT_EQ(float_to_e4m3(value), bits);
  }
  EXPECT_EQ(e4m3_to_float(0x7e), kE4m3Most);
}

// Of all 127 magnitudes the nearest one, of two the one with an even mantissa.
int nearest(double magnitude) {
  int best = 0;
  for (int bits = 1; bits < 0x7f; ++bits) {
    const double off = std::abs(defined(bits) - magnitude), least = std::abs(defined(best) - magnitude);
    if (off < least || (off == least && bits % 2 == 0)) best = bits;
  }
  return best;
}

TEST(E4m3, RoundsToTheNearestAndToEven) {
  std::vector<float> values = {0,      0x1p-149f, 0x1p-126f, 0x1p-11f, 0.0099f, 1.0625f,
                               447.9f, 448,       463.9f,    464,      480,     1e30f};
  for (int bits = 0; bits < 0x7e; ++bits) {
    const auto middle = static_cast<float>((defined(bits) + defined(bits + 1)) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f),
                              std::nextafter(static_cast<float>(defined(bits)), 1e9f)})
      values.push_back(value);
  }
  for (const float value : values) {
    EXPECT_EQ(float_to_e4m3(value), nearest(value)) << value;
    EXPECT_EQ(float_to_e4m3(-value), nearest(value) | 0x80) << value;
  }
}

TEST(E4m3, KeepsWhatIsNotANumberAndEndsInfinities) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float_to_e4m3(kInfinity), 0x7e);
  EXPECT_EQ(float_to_e4m3(-kInfinity), 0xfe);
  EXPECT_TRUE(is_nan_of_e4m3(float_to_e4m3(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace shoal
