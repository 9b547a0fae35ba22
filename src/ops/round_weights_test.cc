#include "ops/round_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/e4m3.h"
#include "base/f16.h"
#include "ops/matrix_testing.h"

namespace shoal::ops {
namespace {

class RoundWeights : public testing::Test, protected MatrixFixture {
 protected:
  StoredMatrix rounded(TensorView weight) {
    integers_ = Tensor(DType::i8, weight.shape()), scales_ = Tensor(DType::f32, {weight.dim(0)});
    ThreadTeam team(2);
    error_ = round_to_int8(team, weight, integers_, scales_);
    return {integers_, scales_};
  }

  Tensor integers_, scales_;
  RoundingError error_;
};

TEST_F(RoundWeights, PackToTheBitsOfTheWeightsTheyWereMadeOf) {
  for (const Shape& shape : {Shape{1, 1}, Shape{17, 33}, Shape{48, 127}, Shape{70, 390}, Shape{64, 512}}) {
    std::vector<float> w = random_values(shape.elements(), 1);
    std::fill_n(w.begin(), shape[1], 0.0f);
    const StoredMatrix now = view_of(w, shape), ahead = rounded(now.weight);
    const auto packed = [&](const StoredMatrix& matrix) {
      std::string bytes;
      for (const PackedMatrix& p :
           {pack_matrix(ctx_, matrix, {}, DType::i8), pack_gate_up(ctx_, matrix, matrix, DType::i8),
            pack_stacked(ctx_, std::array{matrix, matrix}, {}, DType::i8)})
        for (const Tensor* part : {&p.storage, &p.scales})
          bytes.append(static_cast<const char*>(part->view().data()), static_cast<size_t>(part->bytes()));
      return bytes;
    };
    EXPECT_EQ(packed(ahead), packed(now)) << shape;
    EXPECT_THROW(pack_matrix(ctx_, ahead, {}, DType::f32), Error);
    EXPECT_THROW(pack_stacked(ctx_, std::array{ahead, now}, {}, DType::i8), Error);
  }
}

// An output's weights are all those of its index, wherever they lie.
TEST_F(RoundWeights, OfKernelsShareTheScaleOfTheirOutput) {
  for (const int axis : {0, 1}) {
    const Shape shape = axis == 0 ? Shape{5, 7, 3} : Shape{7, 5, 3};
    std::vector<float> w = random_values(shape.elements(), 9);
    const auto place = [&](int64_t output, int64_t input, int64_t tap) {
      return static_cast<size_t>((axis == 0 ? output * 7 + input : input * 5 + output) * 3 + tap);
    };
    w[place(2, 6, 1)] = -3.0f;
    for (int64_t i = 0; i < 21; ++i) w[place(4, i / 3, i % 3)] = 0;
    const Tensor integers(DType::i8, shape), scales(DType::f32, {5});
    ThreadTeam team(2);
    round_kernel_to_int8(team, view_of(w, shape), axis, integers, scales);
    EXPECT_EQ(scales.as<float>()[2], 3.0f / 127);
    EXPECT_EQ(scales.as<float>()[4], 0.0f);
    EXPECT_EQ(integers.as<int8_t>()[place(2, 6, 1)], -127);
    const Tensor wide = widen_int8(team, integers, scales, axis, DType::f32),
                 half = widen_int8(team, integers, scales, axis, DType::f16),
                 brain = widen_int8(team, integers, scales, axis, DType::bf16);
    for (int64_t output = 0; output < 5; ++output)
      for (int64_t i = 0; i < 21; ++i) {
        const size_t at = place(output, i / 3, i % 3);
        const float scale = scales.as<float>()[output], integer = integers.as<int8_t>()[at];
        EXPECT_EQ(wide.as<float>()[at], integer * scale);
        EXPECT_NEAR(wide.as<float>()[at], w[at], scale * 0.5001f);
        EXPECT_EQ(brain.as<Bf16>()[at], float_to_bf16(integer * round_to_bf16(scale)));
        EXPECT_EQ(half.as<F16>()[at], float_to_f16(integer * f16_to_float(float_to_f16(scale))));
      }
    w[place(1, 3, 0)] = NAN;
    EXPECT_THROW(round_kernel_to_int8(team, view_of(w, shape), axis, integers, scales), Error);
  }
}

TEST_F(RoundWeights, TellHowFarTheyAre) {
  std::vector<float> w = {127.0f, 2.5f, -3.5f, 0.25f, 0, 0, 0, 0};
  rounded(view_of(w, {2, 4}));
  EXPECT_EQ(std::memcmp(integers_.view().data(), "\x7f\x02\xfc\0\0\0\0", 8), 0);
  EXPECT_EQ(scales_.as<float>()[0], 1.0f);
  EXPECT_EQ(scales_.as<float>()[1], 0.0f);
  EXPECT_DOUBLE_EQ(error_.share(), std::sqrt(0.5625 / (127.0 * 127 + 2.5 * 2.5 + 3.5 * 3.5 + 0.0625)));
  EXPECT_DOUBLE_EQ(error_.worst, error_.share());
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    w[5] = bad;
    EXPECT_THROW(rounded(view_of(w, {2, 4})), Error) << bad;
  }
}

TEST_F(RoundWeights, ToE4m3AreTheNearestOfAllValues) {
  constexpr int64_t kOutputs = 5, kDepth = 71;
  std::vector<float> w = random_values(kOutputs * kDepth, 3, 0.2f);
  std::fill_n(w.begin(), kDepth, 0.0f);
  const Tensor values(DType::f8, {kOutputs, kDepth}), scales(DType::f32, {kOutputs});
  ThreadTeam team(2);
  const RoundingError error = round_to_fp8(team, view_of(w, {kOutputs, kDepth}), values, scales);
  double difference = 0, norm = 0;
  for (int64_t n = 0; n < kOutputs; ++n) {
    float largest = 0;
    for (int64_t k = 0; k < kDepth; ++k)
      largest = std::max(largest, std::abs(w[static_cast<size_t>(n * kDepth + k)]));
    const float scale = scales.as<float>()[n];
    EXPECT_EQ(scale, largest / 448);
    for (int64_t k = 0; k < kDepth; ++k) {
      const float weight = w[static_cast<size_t>(n * kDepth + k)];
      const double off = std::abs(weight - double{scale} * e4m3_to_float(values.view().row<uint8_t>(n)[k]));
      double least = std::abs(weight);
      for (int bits = 0; bits < 256; ++bits)
        if ((bits & 0x7f) != 0x7f)
          least = std::min(least, std::abs(weight - double{scale} * e4m3_to_float(static_cast<E4m3>(bits))));
      EXPECT_LE(off, least + std::abs(weight) * 0x1p-22) << n << ", " << k;
      difference += off * off, norm += double{weight} * weight;
    }
  }
  EXPECT_NEAR(error.share(), std::sqrt(difference / norm), 1e-9);
  EXPECT_GT(error.share(), 0.01);
  w[100] = NAN;
  EXPECT_THROW(round_to_fp8(team, view_of(w, {kOutputs, kDepth}), values, scales), Error);
}

}  // namespace
}  // namespace shoal::ops
