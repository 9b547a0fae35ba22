// A codec whose weights are kept in 8 bits sounds, bit for bit, as one of 16-bit weights of the rounded
// values.
#include <gtest/gtest.h>
#include <vector>

#include "base/philox.h"
#include "models/dac/codec.h"
#include "models/dac/inventory.h"
#include "models/dac/rounded_source_testing.h"
#include "models/dac/small_config_testing.h"
#include "ops/device_state.h"
#include "ops/device_testing.h"

namespace shoal::dac {
namespace {

constexpr uint64_t kSeed = 7;

std::vector<int32_t> random_codes(const Config& config, int64_t frames) {
  std::vector<int32_t> codes(static_cast<size_t>(frames * config.num_codebooks()));
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<int32_t>(philox4x32(kSeed, {static_cast<uint32_t>(i), 9, 0, 0})[0] % 16);
  return codes;
}

std::vector<float> sound(int64_t samples) {
  std::vector<float> wave(static_cast<size_t>(samples));
  for (size_t i = 0; i < wave.size(); ++i)
    wave[i] = 0.4f * static_cast<float>(std::sin(0.03 * static_cast<double>(i)));
  return wave;
}

class Int8Codec : public testing::TestWithParam<DType> {
 protected:
  DType operand() const { return GetParam(); }
  MatrixFormat int8() const { return {DType::i8, operand()}; }
  void SetUp() override {
    if (!ops::multiplies(machine_.device, operand())) GTEST_SKIP() << "no products of this type here";
  }

  Codec of(const Config& config, RoundedSource::Form form, MatrixFormat format) {
    RoundedSource source(kSeed, machine_.team, form, operand());
    return Codec::of(source, config, ctx_, format, Parts::both);
  }
  Codec of_floats(const Config& config) { return of(config, RoundedSource::Form::floats, operand()); }
  Codec of_integers(const Config& config, MatrixFormat format) {
    return of(config, RoundedSource::Form::integers, format);
  }

  // Several utterances at once, in pieces of these sizes, each a frame longer than the one before.
  std::vector<float> in_pieces(const Codec& codec, const std::vector<int32_t>& pieces) {
    constexpr int kStreams = 3;
    CodecStatePool pool(codec, ctx_, kStreams);
    std::vector<CodecStream> opened;
    std::vector<CodecStream*> streams;
    for (int s = 0; s < kStreams; ++s) opened.emplace_back(pool);
    for (CodecStream& stream : opened) streams.push_back(&stream);
    std::vector<float> all;
    for (const int32_t piece : pieces) {
      const std::vector<int32_t> offsets = {0, piece, 2 * piece + 1, 3 * piece + 3};
      const auto codes = random_codes(codec.config(), offsets.back());
      std::vector<float> pcm(static_cast<size_t>(offsets.back() * codec.config().samples_per_frame()));
      codec.decode_streams(ctx_, streams, {offsets}, codes, pcm);
      all.insert(all.end(), pcm.begin(), pcm.end());
    }
    return all;
  }
  void expect_same(const Codec& narrow, const Codec& wide, int64_t frames,
                   const std::vector<int32_t>& pieces) {
    const auto codes = random_codes(wide.config(), frames);
    EXPECT_EQ(narrow.decode(ctx_, codes), wide.decode(ctx_, codes));
    EXPECT_EQ(in_pieces(narrow, pieces), in_pieces(wide, pieces));
    const auto wave = sound(frames * wide.config().samples_per_frame());
    EXPECT_EQ(narrow.encode(ctx_, wave), wide.encode(ctx_, wave));
  }

  ops::TestMachine machine_{/*threads=*/2, /*record=*/true};
  ops::Context& ctx_ = machine_.context;
};

// A file of 8 bits where they are not multiplied, as on every CPU.
TEST_P(Int8Codec, BecomesItsValuesWhileItIsLoaded) {
  const Config config = small_config();
  const Codec wide = of_floats(config), widened = of_integers(config, operand());
  EXPECT_EQ(widened.memory().total(), wide.memory().total());
  expect_same(widened, wide, 90, {1, 5, 40});
}

TEST_P(Int8Codec, SoundsAsItsValuesIn16Bits) {
  if (!ops::multiplies(machine_.device, int8())) GTEST_SKIP() << "needs a GPU and 16 bits beside the weights";
  Config with_transformers = small_config();
  with_transformers.encoder_dim = 32;
  with_transformers.encoder_transformer_layers = {1, 1};
  for (const Config& config : {small_config(), with_transformers}) {
    const Codec wide = of_floats(config);
    expect_same(of_integers(config, int8()), wide, 300, {1, 2, 5, 40, 100});
    expect_same(Codec::random(config, ctx_, int8(), Parts::both, kSeed), wide, 90, {1, 5});
  }
}

// Fused residual units, kernels of tensor maps and recorded passes: what small sizes do not have.
TEST_P(Int8Codec, OfPublishedSizesSoundsAsItsValuesIn16Bits) {
  if (!ops::multiplies(machine_.device, int8())) GTEST_SKIP() << "needs a GPU and 16 bits beside the weights";
  const Codec wide = of_floats(Config::published()), narrow = of_integers(Config::published(), int8());
  EXPECT_LT(narrow.memory().total(), 425e6);
  EXPECT_GT(wide.memory().total(), 800e6);
  expect_same(narrow, wide, 150, {1, 1, 1, 4, 8, 8, 8, 60});
}

TEST_P(Int8Codec, IsRefusedByNameOnACpu) {
  if (!ops::testing_on_cpu()) GTEST_SKIP() << "a GPU multiplies them";
  for (const MatrixFormat format : {int8(), MatrixFormat(DType::i8)}) try {
      Codec::random(small_config(), ctx_, format, Parts::decode, kSeed);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_NE(error.message().find("expected I8 times BF16 or F16, on a GPU"), std::string::npos);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Int8Codec, testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

// All but the first and the last convolution, the code search and what is no matrix.
TEST(CodecInventory, SaysWhatMayBeKeptIn8Bits) {
  const Config config = small_config();
  int narrow = 0;
  for (const RequiredTensor& tensor : required_tensors(config, Parts::both)) {
    const std::string_view name = tensor.name;
    const bool is_exact = name == "encoder.block.0.conv" || name.starts_with("decoder.model.4") ||
                          name.ends_with("_proj") || name.find("dwconv") != name.npos ||
                          name.find("codebook") != name.npos;
    const bool is_matrix = tensor.weight_normed || tensor.shape.rank() == 2;
    EXPECT_EQ(tensor.outputs_axis.has_value(), is_matrix && !is_exact) << name;
    if (!tensor.outputs_axis) continue;
    ++narrow;
    const bool transposed =
        name.starts_with("quantizer.upsample.0.0") ||
        (name.starts_with("decoder.model.") && name.ends_with(".block.1.conv") && tensor.shape[2] != 7);
    EXPECT_EQ(*tensor.outputs_axis, transposed ? 1 : 0) << name;
  }
  EXPECT_GT(narrow, 40);
}

}  // namespace
}  // namespace shoal::dac
