#include "models/kokoro/loader.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/kokoro/checkpoint_testing.h"
#include "models/kokoro/fixtures_testing.h"
#include "models/kokoro/small_config_testing.h"
#include "ops/device_testing.h"
#include "ops/transfer.h"

namespace shoal::kokoro {
namespace {

const StoredArray& array_of(const std::vector<StoredArray>& arrays, const std::string& name) {
  return *std::ranges::find(arrays, name, &StoredArray::name);
}

// Both forms of norm, and of convolution: axis 0 of a transposed one is its input.
TEST(KokoroWeights, ConvolutionsAreFoldedOverTheirFirstAxis) {
  ThreadTeam team(2);
  for (const NormForm form : {NormForm::weight_g, NormForm::parametrized}) {
    const std::vector<StoredArray> arrays = stored_arrays(small_config(), form);
    const weights::Checkpoint checkpoint = open_checkpoint(arrays);
    const auto source = weights::read_weights(checkpoint, team);
    const char* ending = form == NormForm::weight_g ? ".weight_v" : ".parametrizations.weight.original1";
    for (const auto& [prefix, shape] : {std::pair<std::string, Shape>{"decoder.generator.ups.0", {16, 8, 8}},
                                        {"decoder.decode.3.pool", {25, 1, 3}},
                                        {"decoder.encode.conv1", {18, 12, 3}}}) {
      const StoredArray& v = array_of(arrays, prefix + ending);
      const weights::Weight weight = source->convolution(prefix, shape);
      const TensorView folded = weight.view;
      const int64_t row = shape.elements() / shape[0];
      for (int64_t i = 0; i < shape[0]; ++i) {
        double squares = 0;
        for (int64_t k = 0; k < row; ++k)
          squares += std::pow(double{v.values[static_cast<size_t>(i * row + k)]}, 2);
        for (int64_t k = 0; k < row; ++k) {
          const double want =
              static_cast<double>(i + 1) * v.values[static_cast<size_t>(i * row + k)] / std::sqrt(squares);
          ASSERT_NEAR(folded.as<float>()[i * row + k], want, 1e-6 * std::abs(want)) << prefix << " " << i;
        }
      }
    }
  }
}

TEST(KokoroWeights, ShapesAreChecked) {
  ThreadTeam team(1);
  const weights::Checkpoint checkpoint = open_checkpoint(stored_arrays(small_config()));
  const auto source = weights::read_weights(checkpoint, team);
  EXPECT_EQ(weights::code_of([&] { source->tensor("bert_encoder.weight", {12, 10}); }),
            ErrorCode::corrupt_file);
  EXPECT_EQ(weights::code_of([&] { source->tensor("bert_encoder.wait", {10, 12}); }), ErrorCode::not_found);
  EXPECT_EQ(weights::code_of([&] { source->convolution("decoder.generator.ups.0", {8, 16, 8}); }),
            ErrorCode::corrupt_file);
}

TEST(KokoroWeights, RandomOnesAreAFunctionOfSeedNameAndShape) {
  ThreadTeam one(1), three(3);
  const Shape shape = {64, 9000};
  const auto values = [&](uint64_t seed, const std::string& name, ThreadTeam& team) {
    const Tensor tensor = random_weights(seed, team)->tensor(name, shape).owned;
    return std::vector<float>(tensor.span<float>().begin(), tensor.span<float>().end());
  };
  EXPECT_EQ(values(1, "a.weight", one), values(1, "a.weight", three));
  EXPECT_NE(values(1, "a.weight", one), values(2, "a.weight", one));
  EXPECT_NE(values(1, "a.weight", one), values(1, "b.weight", one));
}

double root_mean_square(const Tensor& tensor) {
  double squares = 0;
  for (const float value : tensor.span<float>()) squares += double{value} * double{value};
  return std::sqrt(squares / static_cast<double>(tensor.elements()));
}

TEST(KokoroWeights, RandomOnesKeepTheScaleOfTheirInputs) {
  ThreadTeam team(1);
  const auto source = random_weights(3, team);
  EXPECT_NEAR(root_mean_square(source->tensor("x.weight", {300, 400}).owned), 1 / std::sqrt(400), 0.002);
  EXPECT_NEAR(root_mean_square(source->convolution("x.convs1.0", {64, 100, 7}).owned), 1 / std::sqrt(700),
              0.002);
  // Every output of a transposed convolution sees two inputs a channel.
  EXPECT_NEAR(root_mean_square(source->convolution("g.ups.0", {200, 50, 20}).owned), 1 / std::sqrt(400),
              0.002);
  // 50 sigmoids of only the bias: about three frames.
  double frames = 0;
  const Tensor logits = source->tensor("predictor.duration_proj.linear_layer.bias", {50}).owned;
  for (const float logit : logits.span<float>()) frames += 1 / (1 + std::exp(-double{logit}));
  EXPECT_NEAR(frames, 3, 0.3);
  EXPECT_NEAR(source->tensor("predictor.F0_proj.bias", {1}).view.as<float>()[0], 150, 5);
}

class KokoroLoader : public testing::Test {
 protected:
  ops::TestMachine device_;
};

// A norm's own weight and bias, before the style: whatever the normalised value and the style are.
TEST_F(KokoroLoader, TheOwnWeightsOfANormAreFoldedIntoItsStyle) {
  const int64_t channels = 12, width = 128;
  const std::vector<StoredArray> plain_arrays = stored_arrays(small_config());
  std::vector<StoredArray> arrays = plain_arrays;
  StoredArray weight{"decoder.encode.norm1.norm.weight", {channels}, {}};
  StoredArray bias{"decoder.encode.norm1.norm.bias", {channels}, {}};
  for (int64_t c = 0; c < channels; ++c) {
    weight.values.push_back(0.5f + 0.25f * static_cast<float>(c));
    bias.values.push_back(0.75f - 0.125f * static_cast<float>(c));
  }
  arrays.push_back(weight);
  arrays.push_back(bias);
  const weights::Checkpoint plain_file = open_checkpoint(plain_arrays), file = open_checkpoint(arrays);
  const auto plain_source = weights::read_weights(plain_file, *device_.context.team);
  const auto source = weights::read_weights(file, *device_.context.team);
  Loader plain_loader(*plain_source, device_.context, DType::f32),
      loader(*source, device_.context, DType::f32);
  const StyleAffine plain = plain_loader.style_affine("decoder.encode.norm1.fc", channels, width);
  const StyleAffine folded = loader.style_affine("decoder.encode.norm1.fc", channels, width);

  const StoredArray& stored = array_of(plain_arrays, "decoder.encode.norm1.fc.weight");
  EXPECT_EQ(std::vector<float>(plain.weight.span<float>().begin(), plain.weight.span<float>().end()),
            stored.values);
  const auto map = [&](const StyleAffine& affine, int64_t output) {
    double sum = affine.bias.as<float>()[output];
    for (int64_t i = 0; i < width; ++i)
      sum += affine.weight.as<float>()[output * width + i] * std::sin(1.0 + static_cast<double>(i));
    return sum;
  };
  for (int64_t c = 0; c < channels; ++c) {
    const double w = weight.values[static_cast<size_t>(c)], b = bias.values[static_cast<size_t>(c)];
    for (const double x : {-2.0, 0.0, 0.7}) {
      const double want = (1 + map(plain, c)) * (w * x + b) + map(plain, channels + c);
      EXPECT_NEAR((1 + map(folded, c)) * x + map(folded, channels + c), want, 1e-5) << c;
    }
  }
  // One of the two without the other is no weight norm.
  arrays.pop_back();
  const weights::Checkpoint half = open_checkpoint(arrays);
  const auto half_source = weights::read_weights(half, *device_.context.team);
  Loader half_loader(*half_source, device_.context, DType::f32);
  EXPECT_EQ(weights::code_of([&] { half_loader.style_affine("decoder.encode.norm1.fc", channels, width); }),
            ErrorCode::not_found);
}

TEST_F(KokoroLoader, CountsWhatItPlaces) {
  const auto source = random_weights(1, *device_.context.team);
  Loader loader(*source, device_.context, DType::f32);
  const Tensor norm = loader.f32("x.norm.weight", {32});
  EXPECT_EQ(loader.bytes(), 32 * 4);
  const Tensor seen = ops::to_host(device_.context, norm);
  EXPECT_NEAR(seen.as<float>()[0], 1, 0.25);
  loader.host_f32("x.weight", {8, 32});
  EXPECT_EQ(loader.bytes(), 32 * 4);
  const ops::PackedMatrix matrix = loader.linear("x", 8, 32, /*bias=*/true);
  EXPECT_EQ(loader.bytes(), 32 * 4 + matrix.bytes());
  EXPECT_EQ(matrix.outputs, 8);
  EXPECT_FALSE(matrix.bias.empty());
  EXPECT_TRUE(loader.linear("x", 8, 32, /*bias=*/false).bias.empty());
}

TEST_F(KokoroLoader, ReadsTheFixtures) {
  weights::Checkpoint checkpoint = weights::Checkpoint::open(kFixture + "/kokoro-v1_0.pth");
  weights::normalise_kokoro_names(checkpoint);
  Config config = Config::read(kFixture + "/config.json");
  config.take_widths(checkpoint);
  const auto source = weights::read_weights(checkpoint, *device_.context.team);
  for (const RequiredTensor& tensor : required_tensors(config)) {
    const Tensor values =
        weights::to_f32(tensor.weight_normed ? source->convolution(tensor.name, tensor.shape)
                                             : source->tensor(tensor.name, tensor.shape),
                        nullptr);
    EXPECT_TRUE(std::isfinite(root_mean_square(values))) << tensor.name;
  }
}

}  // namespace
}  // namespace shoal::kokoro
