// The codec against its formulas, in many shapes, and against what the official code computed.
#include "models/dac/codec.h"

#include <cmath>
#include <gtest/gtest.h>

#include "base/philox.h"
#include "models/dac/codec_oracle_testing.h"
#include "models/dac/small_config_testing.h"
#include "ops/device_testing.h"
#include "tests/parity/codec_parity.h"

namespace shoal::dac {
namespace {

struct Variant {
  const char* name;
  int64_t frames;
  void (*change)(Config&);
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

const Variant kVariants[] = {
    {"WindowSmallerThanAPage", 90, [](Config&) {}},
    {"WindowOfOne", 20, [](Config& c) { c.q_window = 1; }},
    {"LongWindow", 150, [](Config& c) { c.q_window = 100; }},
    {"OddRatesAndHalves", 25,
     [](Config& c) {
       c.encoder_rates = {5, 1, 3};
       c.decoder_rates = {3, 5, 1};
       c.encoder_transformer_layers = {0, 0, 0};
       c.decoder_dim = 23;
     }},
    {"UnequalDownsampling", 40, [](Config& c) { c.downsample_factor = {3, 1, 2}; }},
    {"TransformersNarrowerThanTheLatents", 90, [](Config& c) { c.q_dim = 12; }},
    {"TransformersWiderThanTheLatents", 25, [](Config& c) { c.q_dim = 27; }},
    {"NarrowTransformersWithoutLayers", 12,
     [](Config& c) {
       c.q_dim = 5;
       c.q_layers = 0;
     }},
    {"TransformersInBothBlocks", 150,
     [](Config& c) {
       c.encoder_dim = 32;
       c.encoder_transformer_layers = {1, 2};
       c.enc_window = 37;
     }},
    {"SemanticCodebookOnly", 12,
     [](Config& c) {
       c.n_codebooks = 0;
       c.q_layers = 0;
     }},
    {"PastTheFirstRopeTable", 1100,
     [](Config& c) {
       c.q_block_size = 1;
       c.encoder_rates = c.decoder_rates = {2};
       c.encoder_transformer_layers = {0};
     }},
};

class CodecVariants : public testing::TestWithParam<Variant> {
 protected:
  static constexpr uint64_t kSeed = 11;
  CodecVariants() : config_(small_config()) {
    GetParam().change(config_);
    source_ = random_weights(kSeed, machine_.team);
  }
  uint32_t draw(uint32_t i) const { return philox4x32(kSeed, {i, 7, 0, 0})[0]; }

  Config config_;
  ops::TestMachine machine_{/*threads=*/2};
  ops::Context& ctx_ = machine_.context;
  std::unique_ptr<weights::TensorSource> source_;
};

// Some sixty f32 roundings in a row (6e-8 each) and a decoder that enlarges them a little; the traps of spec
// dac 10 cost 5e-4 and more.
constexpr double kTolerance = 1e-5;

TEST_P(CodecVariants, DecodingMatchesTheFormulas) {
  const Codec codec = Codec::random(config_, ctx_, DType::f32, Parts::decode, kSeed);
  std::vector<int32_t> codes(static_cast<size_t>(GetParam().frames * config_.num_codebooks()));
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<int32_t>(draw(static_cast<uint32_t>(i)) % 44);
  const auto wave = codec.decode(ctx_, codes);
  const auto want = CodecOracle(*source_, config_).decode(codes);
  ASSERT_EQ(wave.size(), want.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < wave.size(); ++i) {
    difference += std::pow(wave[i] - want[i], 2);
    size += want[i] * want[i];
  }
  EXPECT_GT(size, 0.01 * static_cast<double>(wave.size())) << "too quiet to prove anything";
  EXPECT_LE(std::sqrt(difference / size), kTolerance);
}

TEST_P(CodecVariants, EncodingMatchesTheFormulas) {
  const Codec codec = Codec::random(config_, ctx_, DType::f32, Parts::encode, kSeed);
  std::vector<float> samples(static_cast<size_t>(GetParam().frames * config_.samples_per_frame() - 1));
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = static_cast<float>(std::sin(0.05 * static_cast<double>(i))) * 0.5f +
                 0.3f * (uniform_open(draw(static_cast<uint32_t>(i))) - 0.5f);
  const auto codes = codec.encode(ctx_, samples);
  const auto want = CodecOracle(*source_, config_).encode(samples);
  ASSERT_EQ(codes.size(), want.codes.size());
  const auto books = static_cast<size_t>(config_.num_codebooks());
  for (size_t frame = 0; frame < codes.size() / books; ++frame) {
    for (size_t i = frame * books; i < (frame + 1) * books; ++i) {
      if (codes[i] == want.codes[i]) continue;
      EXPECT_LT(want.margin[i], 1e-4) << "frame " << frame << ", codebook " << i % books;
      break;  // what follows a tie is excused
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecVariants, testing::ValuesIn(kVariants),
                         [](const auto& tested) { return std::string(tested.param.name); });

const std::string kFixtures = SHOAL_SOURCE_DIR "/tests/data/fish/set_a";

TEST(CodecFixture, DecodingMatchesTheOfficialCode) { parity::check_codec_decoding(kFixtures); }
TEST(CodecFixture, EncodingMatchesTheOfficialCode) { parity::check_codec_encoding(kFixtures); }
TEST(CodecFixture, Bf16ErrorIsWithinThatOfTheReference) { parity::check_codec_bf16(kFixtures); }
TEST(CodecFixture, StreamingGivesTheWholeWave) { parity::check_codec_streaming(kFixtures); }

}  // namespace
}  // namespace shoal::dac
