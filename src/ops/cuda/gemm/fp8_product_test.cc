// Weights of e4m3 give the bits of 16-bit weights that were rounded to the same values before, by every
// kernel.
#include <algorithm>
#include <cmath>

#include "base/f16.h"
#include "ops/cuda/gemm/narrow_product_testing.h"
#include "ops/round_weights.h"

namespace shoal::ops::cuda {
namespace {

float rounded_as(DType dtype, float value) {
  return dtype == DType::f16 ? f16_to_float(float_to_f16(value)) : round_to_bf16(value);
}

// The number that eight bits are, by the definition: 1.mmm * 2^(e - 7), or 0.mmm * 2^-6.
float defined(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const auto magnitude =
      static_cast<float>(exponent > 0 ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9));
  return bits & 0x80 ? -magnitude : magnitude;
}

// |value| <= 448: the nearest number, of two the one with an even mantissa.
float nearest(float value) {
  static const std::vector<float> numbers = [] {
    std::vector<float> all;
    for (int bits = 0; bits < 0x7f; ++bits) all.push_back(defined(bits));
    return all;
  }();
  const float magnitude = std::min(std::abs(value), 448.0f);
  const auto above = std::ranges::lower_bound(numbers, magnitude) - numbers.begin();
  if (numbers[static_cast<size_t>(above)] == magnitude) return std::copysign(magnitude, value);
  const float high = numbers[static_cast<size_t>(above)], low = numbers[static_cast<size_t>(above - 1)];
  const float to_high = high - magnitude, to_low = magnitude - low;
  return std::copysign(to_high < to_low || (to_high == to_low && above % 2 == 0) ? high : low, value);
}

// What e4m3 makes of weights [outputs, depth].
std::vector<float> as_e4m3(const std::vector<float>& w, int64_t depth, DType operand) {
  std::vector<float> rounded;
  for (size_t row = 0; row < w.size(); row += static_cast<size_t>(depth)) {
    float largest = 0;
    for (int64_t k = 0; k < depth; ++k)
      largest = std::max(largest, std::abs(w[row + static_cast<size_t>(k)]));
    const float scale = rounded_as(operand, largest / 448.0f), factor = 448.0f / largest;
    for (int64_t k = 0; k < depth; ++k)
      rounded.push_back(rounded_as(operand, nearest(w[row + static_cast<size_t>(k)] * factor) * scale));
  }
  return rounded;
}

class Fp8Weights : public NarrowProducts, public testing::WithParamInterface<DType> {
 protected:
  static DType operand() { return GetParam(); }
  MatrixFormat fp8() const { return {DType::f8, operand()}; }

  Both pack(int64_t outputs, int64_t depth, bool with_bias) {
    std::vector<float> w = random_values(outputs * depth, 2, 0.3f), same = as_e4m3(w, depth, operand());
    std::vector<float> bias = random_values(outputs, 3);
    const TensorView b = with_bias ? view_of(bias, {outputs}) : TensorView{};
    return {pack_matrix(ctx(), view_of(w, {outputs, depth}), b, fp8()),
            pack_matrix(ctx(), view_of(same, {outputs, depth}), b, operand())};
  }
  Both pack_pair(int64_t hidden, int64_t depth) {
    std::vector<float> gate = random_values(hidden * depth, 4, 0.3f),
                       up = random_values(hidden * depth, 5, 0.3f),
                       same_gate = as_e4m3(gate, depth, operand()), same_up = as_e4m3(up, depth, operand());
    const Shape shape{hidden, depth};
    return {pack_gate_up(ctx(), view_of(gate, shape), view_of(up, shape), fp8()),
            pack_gate_up(ctx(), view_of(same_gate, shape), view_of(same_up, shape), operand())};
  }
};

// Rows of x that have a single one pick weights: all numbers, times scales of many magnitudes.
TEST_P(Fp8Weights, AreAllNumbersTimesTheirScales) {
  constexpr int64_t kDepth = 256, kOutputs = 13;
  const Tensor bytes(DType::f8, {kOutputs, kDepth}), scales(DType::f32, {kOutputs});
  for (int64_t n = 0; n < kOutputs; ++n) {
    scales.as<float>()[n] = n == 0 ? 1.0f : n == 1 ? 0.0f : 1.37f * std::ldexp(1.0f, 5 - static_cast<int>(n));
    for (int64_t k = 0; k < kDepth; ++k) {
      const int64_t byte = (k + 5 * n) % 256;
      bytes.as<uint8_t>()[n * kDepth + k] = (byte & 0x7f) == 0x7f ? 0 : static_cast<uint8_t>(byte);
    }
  }
  const PackedMatrix packed = pack_matrix(ctx(), {bytes.view(), scales.view()}, {}, fp8());
  for (const int64_t rows : {1, 8, 16, 32}) {
    for (int64_t first = 0; first < kDepth; first += rows) {
      std::vector<float> one_each(static_cast<size_t>(rows * kDepth));
      for (int64_t t = 0; t < rows; ++t) one_each[static_cast<size_t>(t * kDepth + first + t)] = 1;
      const Tensor x = put(one_each, {rows, kDepth}, operand()), y = garbage({rows, kOutputs});
      linear(ctx(), x, packed, y);
      const std::vector<float> results = get(y);
      for (int64_t t = 0; t < rows; ++t)
        for (int64_t n = 0; n < kOutputs; ++n)
          ASSERT_EQ(results[static_cast<size_t>(t * kOutputs + n)],
                    rounded_as(operand(), defined(bytes.as<uint8_t>()[n * kDepth + first + t]) *
                                              rounded_as(operand(), scales.as<float>()[n])))
              << rows << " rows, output " << n << ", input " << first + t;
    }
  }
}

TEST_P(Fp8Weights, GiveTheBitsOfTheSameValuesIn16Bits) {
  for (const auto& [outputs, depth] : std::vector<std::pair<int64_t, int64_t>>{
           {8, 16}, {9, 40}, {72, 520}, {1024, 2048}, {1024, 3072}, {4096, 1024}, {17, 9736}, {24, 16384}}) {
    SCOPED_TRACE(testing::Message() << outputs << " x " << depth);
    expect_same_products(pack(outputs, depth, outputs % 8 != 0), operand());
  }
}

TEST_P(Fp8Weights, OfPairsAndBehindNormsToo) {
  for (const auto& [hidden, depth] :
       std::vector<std::pair<int64_t, int64_t>>{{40, 40}, {1100, 136}, {3072, 1024}, {9728, 2560}}) {
    const bool streams = hidden > 8192;
    expect_same_pairs(pack_pair(hidden, depth), hidden, depth, streams ? 17 : 300);
  }
}

TEST_P(Fp8Weights, OntoAResidualStreamToo) {
  expect_same_residuals(pack(1024, 2048, false), pack(256, 1024, false), 1024, operand());
}

TEST_P(Fp8Weights, TakeHalfTheMemory) {
  const Both both = pack(1024, 1024, false);
  EXPECT_EQ(both.narrow.storage.bytes() * 2, both.wide.storage.bytes());
  EXPECT_EQ(both.narrow.scales.bytes(), 4 * 1024);
  const Tensor sized = Tensor::sized(DType::f32, {1024, 1024});
  EXPECT_EQ(pack_matrix(ctx(), sized, {}, fp8()).bytes(), both.narrow.bytes());
}

// Both ways to the same products; and what is stored in eight bits becomes nothing else.
TEST_P(Fp8Weights, MayBeRoundedAhead) {
  constexpr int64_t kOutputs = 72, kDepth = 520, kRows = 3;
  ThreadTeam team(2);
  std::vector<float> w = random_values(kOutputs * kDepth, 2, 0.3f);
  std::fill_n(w.begin(), kDepth, 0.0f);
  const TensorView weight = view_of(w, {kOutputs, kDepth});
  const Tensor values(DType::f8, {kOutputs, kDepth}), scales(DType::f32, {kOutputs});
  round_to_fp8(team, weight, values, scales);
  const StoredMatrix stored(values, scales);
  const Tensor x = put(random_values(kRows * kDepth, 7), {kRows, kDepth});
  expect_same({pack_matrix(ctx(), stored, {}, fp8()), pack_matrix(ctx(), weight, {}, fp8())}, kRows, kOutputs,
              [&](const PackedMatrix& m, TensorView y) { linear(ctx(), x, m, y); });
  EXPECT_THROW(pack_matrix(ctx(), stored, {}, operand()), Error);
  EXPECT_THROW(pack_matrix(ctx(), stored, {}, MatrixFormat(DType::i8, operand())), Error);
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, Fp8Weights, testing::Values(DType::bf16, DType::f16),
                         [](const auto& suite) { return std::string(name_of(suite.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
