// The functions of vector_math.cuh on the host: the bits of the CPU's vectors, over all that they are used
// for.
#include "ops/cuda/rows/vector_math.cuh"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "ops/cpu/sequence/sequence_math.h"
#include "ops/cpu/simd/vector16_portable.h"

namespace shoal::ops::cuda {
namespace {

using V = cpu::Vector16<cpu::Portable>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Floats of either sign, evenly spread over the bit patterns between 0 and `most`.
std::vector<float> floats_up_to(float most, int count) {
  std::vector<float> values = {0.0f, -0.0f};
  const uint32_t step = std::bit_cast<uint32_t>(most) / static_cast<uint32_t>(count);
  for (uint32_t bits = 1; bits <= std::bit_cast<uint32_t>(most); bits += step) {
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(-values.back());
  }
  values.push_back(most);
  values.push_back(-most);
  return values;
}

// Of all of 0 .. 1 that a generator's words make, every step-th.
std::vector<float> turns() {
  std::vector<float> values;
  for (uint32_t i = 0; i < 1u << 23; i += 77) values.push_back((static_cast<float>(i) + 0.5f) * 0x1p-23f);
  return values;
}

template <typename Vector, typename Scalar>
void expect_same(const std::string& name, const std::vector<float>& arguments, Vector vector, Scalar scalar) {
  int differing = 0;
  for (const float x : arguments) {
    float want[16];
    vector(V::all(x)).store(want);
    const float got = scalar(x);
    if (std::isnan(got) && std::isnan(want[0])) continue;
    if (std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(want[0])) continue;
    if (++differing <= 3) ADD_FAILURE() << name << "(" << x << "): " << got << ", not " << want[0];
  }
  EXPECT_EQ(differing, 0) << name;
}

TEST(VectorMath, FunctionsHaveTheBitsOfTheCpuVectorKernels) {
  constexpr int kCount = 200'000;
  std::vector<float> all = floats_up_to(3e38f, kCount);
  all.insert(all.end(), {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()});
  const auto same = [&](const char* name, const std::vector<float>& arguments, auto vector, auto scalar) {
    expect_same(name, arguments, vector, scalar);
  };
  same(
      "sigmoid", all, [](V x) { return cpu::sigmoid(x); }, [](float x) { return sigmoid_or_tanh(x, false); });
  same("tanh", all, [](V x) { return cpu::tanh(x); }, [](float x) { return tanh_of(x); });
  same("exponential", all, [](V x) { return cpu::exponential(x); }, [](float x) { return exponential(x); });
  same("sine", all, [](V x) { return cpu::sine(x); }, [](float x) { return sine_of(x); });
  const std::vector<float> quarter = floats_up_to(1.5738f, kCount), unit = floats_up_to(1, kCount);
  same(
      "sine_of_quarter", quarter, [](V x) { return cpu::sine_of_quarter(x); },
      [](float x) { return sine_of_quarter(x); });
  same(
      "cosine_of_unit", unit, [](V x) { return cpu::cosine_of_unit(x); },
      [](float x) { return cosine_of_unit(x); });
  same(
      "sine_of_turn", turns(), [](V x) { return cpu::sine_of_turn(x); },
      [](float x) { return sine_of_turn(x); });
  same(
      "cosine_of_turn", turns(), [](V x) { return cpu::cosine_of_turn(x); },
      [](float x) { return cosine_of_turn(x); });
}

TEST(VectorMath, AnglesHaveTheBitsOfTheCpuVectorKernels) {
  const std::vector<float> parts = floats_up_to(1e30f, 60);
  for (const float y : parts)
    for (const float x : parts) {
      float want[16];
      cpu::angle(V::all(y), V::all(x)).store(want);
      ASSERT_EQ(std::bit_cast<uint32_t>(angle_of(y, x)), std::bit_cast<uint32_t>(want[0])) << y << ", " << x;
    }
}

}  // namespace
}  // namespace shoal::ops::cuda
