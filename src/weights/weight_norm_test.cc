#include "weights/weight_norm.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

const std::string kCodec = SHOAL_SOURCE_DIR "/tests/data/fish/set_a/codec.pth";

// One rounding to float of a value computed in double: half an ulp, and a few ulps of double on the way.
void expect_rounded(float got, double want) { EXPECT_NEAR(got, want, std::abs(want) * 0x1.01p-24) << want; }

TEST(WeightNorm, ScalesRowsToTheirNorm) {
  std::vector<float> g = {10, -1}, v = {3, 0, 0, 4, 0, 5e-30f, 12e-30f, 0};
  const Tensor w = fold_weight_norm(TensorView::of(g.data(), DType::f32, {2, 1, 1}),
                                    TensorView::of(v.data(), DType::f32, {2, 2, 2}), nullptr);
  EXPECT_EQ(w.shape(), (Shape{2, 2, 2}));
  const double want[] = {6, 0, 0, 8, 0, -5.0 / 13, -12.0 / 13, 0};  // 5e-30 squared underflows in float
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(w.as<float>()[i], want[i], 1e-7 * std::abs(want[i])) << i;
}

TEST(WeightNorm, RowsWithoutADirectionAreRefused) {
  std::vector<float> g = {1, 1}, v = {1, 1, 0, 0};
  const auto fold = [&] {
    fold_weight_norm(TensorView::of(g.data(), DType::f32, {2, 1}),
                     TensorView::of(v.data(), DType::f32, {2, 2}), nullptr);
  };
  EXPECT_THAT(message_of(fold), testing::HasSubstr("row 1"));
  v = {1, 1, INFINITY, 0};
  EXPECT_EQ(code_of(fold), ErrorCode::corrupt_file);
  v = {1, 1, NAN, 0};
  EXPECT_EQ(code_of(fold), ErrorCode::corrupt_file);
}

// Expected values: numpy, g * v / sqrt(sum(v * v, axis=(1, 2))) in float64 on the arrays of codec.pth.
TEST(ConvWeight, FoldsBothFormsOfTheCodec) {
  const Checkpoint codec = Checkpoint::open(kCodec);
  ThreadTeam team(2);
  const Shape up{64, 32, 16};  // a transposed convolution: dimension 0 is the input channel
  const Tensor w = conv_weight(codec, "decoder.model.1.block.1.conv", up, &team);
  const float* values = w.as<float>();
  expect_rounded(values[0], 0.0310677799400557);
  expect_rounded(values[32 * 16 + 1], 0.063578758236056354);
  expect_rounded(values[w.elements() - 1], -0.053933198084004673);
  double sum = 0;
  for (float value : w.span<float>()) sum += std::abs(double{value});
  EXPECT_NEAR(sum, 1795.08904877, 1795.0 * 0x1p-24);

  const Tensor old =
      conv_weight(codec, "quantizer.semantic_quantizer.quantizers.0.in_proj", {8, 64, 1}, nullptr);
  expect_rounded(old.as<float>()[0], -0.0040098636460957687);
  expect_rounded(old.as<float>()[8 * 64 - 1], -0.027852972300674385);
}

TEST(ConvWeight, PlainWeightsPassThroughAndShapesAreChecked) {
  const Checkpoint codec = Checkpoint::open(kCodec);
  const std::string plain = "quantizer.downsample.0.0.conv";
  const Tensor w = conv_weight(codec, plain, {64, 64, 2}, nullptr);
  EXPECT_EQ(w.as<float>()[77], codec.find(plain + ".weight")->as<float>()[77]);
  EXPECT_EQ(code_of([&] { conv_weight(codec, plain, {64, 64, 3}, nullptr); }), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([&] { conv_weight(codec, "decoder.model.1.block.1.conv", {32, 64, 16}, nullptr); }),
            ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([&] { conv_weight(codec, "decoder.model.99", {1, 1, 1}, nullptr); }),
            ErrorCode::not_found);
}

}  // namespace
}  // namespace shoal::weights
