// Encoding: batches, prefixes and memory that is used again give the same codes.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <vector>

#include "models/dac/codec.h"
#include "models/dac/small_config_testing.h"
#include "ops/device_testing.h"
#include "tensor/device_memory.h"

namespace shoal::dac {
namespace {

// With a transformer in each block.
Config encoder_config() {
  Config config = small_config();
  config.encoder_dim = 32;
  config.encoder_transformer_layers = {1, 1};
  config.enc_window = 20;
  return config;
}

class Encoding : public testing::TestWithParam<DType> {
 protected:
  std::vector<float> noise(size_t samples) {
    std::uniform_real_distribution<float> value(-1, 1);
    std::vector<float> wave(samples);
    for (float& sample : wave) sample = value(random_);
    return wave;
  }

  ops::TestMachine machine_{/*threads=*/2};
  ops::Context& ctx_ = machine_.context;
  const Codec codec_ = Codec::random(encoder_config(), ctx_, GetParam(), Parts::encode, 5);
  const size_t books_ = static_cast<size_t>(codec_.config().num_codebooks()),
               hop_ = static_cast<size_t>(codec_.config().samples_per_frame());
  std::minstd_rand random_{7};
};

TEST_P(Encoding, WavesAreTheSameAloneAndInABatch) {
  const std::vector<size_t> lengths = {1, 0, 555, 12, 700, 13, 40};
  std::vector<int32_t> offsets = {0}, alone;
  std::vector<float> samples;
  for (const size_t length : lengths) {
    const std::vector<float> wave = noise(length);
    samples.insert(samples.end(), wave.begin(), wave.end());
    offsets.push_back(offsets.back() + static_cast<int32_t>(length));
    const auto codes = codec_.encode(ctx_, wave);
    EXPECT_EQ(static_cast<int64_t>(codes.size()),
              codec_.frames_for(static_cast<int64_t>(length)) * codec_.config().num_codebooks());
    alone.insert(alone.end(), codes.begin(), codes.end());
  }
  std::vector<int32_t> codes(alone.size());
  codec_.encode_batch(ctx_, {offsets}, samples, codes);
  EXPECT_EQ(codes, alone);
}

// Taking a GPU's memory and giving it back stops everybody's work on it. (A CPU's is not refused here: there
// only the codes of memory that is used again are compared.)
TEST_P(Encoding, EncodingAgainTakesNoMemoryOfTheDevice) {
  const std::vector<float> wave = noise(5 * hop_);
  const std::vector<int32_t> both = {0, static_cast<int32_t>(3 * hop_), static_cast<int32_t>(5 * hop_)};
  std::vector<int32_t> together(5 * books_);
  codec_.encode_batch(ctx_, {both}, wave, together);
  const auto alone = codec_.encode(ctx_, wave);
  std::vector<int32_t> together_again(together.size()), alone_again;
  device_memory::fail_allocation_after(0);
  EXPECT_NO_THROW(alone_again = codec_.encode(ctx_, wave));
  EXPECT_NO_THROW(codec_.encode_batch(ctx_, {both}, wave, together_again));
  device_memory::fail_allocation_after(-1);
  EXPECT_EQ(alone_again, alone);
  EXPECT_EQ(together_again, together);
}

TEST_P(Encoding, EncodingIsCausal) {
  const std::vector<float> wave = noise(100 * hop_);
  const auto whole = codec_.encode(ctx_, wave);
  for (const size_t frames : {1, 31, 32, 33, 99}) {
    const auto prefix = codec_.encode(ctx_, std::span(wave).first(frames * hop_));
    EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), whole.begin())) << frames << " frames";
  }
}

INSTANTIATE_TEST_SUITE_P(Matrices, Encoding, testing::Values(DType::f32, DType::bf16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::dac
