#include "models/dac/config.h"

#include <cstdio>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/dac/small_config_testing.h"

namespace shoal::dac {
namespace {

const std::string kFixture = SHOAL_SOURCE_DIR "/tests/data/fish/set_a/codec_config.json";

TEST(DacConfig, PublishedValuesAreConsistent) {
  const Config config = Config::published();
  config.validate("published");
  EXPECT_EQ(config.latent_dim, 1024);
  EXPECT_EQ(config.q_dim, 1024);
  EXPECT_EQ(config.q_inter, 3072);
  EXPECT_EQ(config.samples_per_frame(), 2048);
  EXPECT_EQ(config.num_codebooks(), 10);
  EXPECT_EQ(config.total_codes(), 4096 + 9 * 1024);
  EXPECT_NEAR(config.frames_per_second(), 21.533, 1e-3);
}

TEST(DacConfig, ReadsTheFixtures) {
  const Config config = Config::read(kFixture);
  EXPECT_EQ(config.latent_dim, 64);  // derived
  EXPECT_EQ(config.q_dim, 64);       // derived
  EXPECT_EQ(config.q_inter, 160);
  EXPECT_EQ(config.q_head_dim, 32);
  EXPECT_EQ(config.enc_window, 512);  // default
  EXPECT_EQ(config.encoder_transformer_layers, (std::vector<int64_t>{0, 0, 0, 2}));
}

// The fixture's text with one value replaced, or added where it has none.
std::string edited(const std::string& key, const std::string& value) {
  std::ifstream in(kFixture);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const size_t at = text.find('"' + key + '"');
  if (at == std::string::npos) return text.replace(0, 1, "{\"" + key + "\": " + value + ",");
  const size_t begin = text.find(':', at) + 1;
  const size_t end = text[text.find_first_not_of(" \n", begin)] == '[' ? text.find(']', begin) + 1
                                                                       : text.find_first_of(",\n}", begin);
  return text.replace(begin, end - begin, value);
}

TEST(DacConfig, TheWidthOfTheQuantisersTransformersIsRead) {
  const std::string path = testing::TempDir() + "/narrow_codec_config.json";
  std::ofstream(path) << edited("q_inter", "0, \"q_dim\": 48");
  const Config config = Config::read(path);
  EXPECT_EQ(config.latent_dim, 64);
  EXPECT_EQ(config.q_dim, 48);
  EXPECT_EQ(config.q_inter, 3 * 48);
  std::remove(path.c_str());
}

TEST(DacConfig, HostileValuesAreRefusedByName) {
  const std::string path = testing::TempDir() + "/hostile_codec_config.json";
  const std::pair<const char*, const char*> cases[] = {
      {"sample_rate", "0"},
      {"encoder_dim", "-4"},
      {"encoder_dim", "4611686018427387904"},
      {"encoder_rates", "[]"},
      {"encoder_rates", "[0, 4, 8, 8]"},
      {"encoder_rates", "[4611686018427387904, 4611686018427387904, 2, 2]"},
      {"encoder_rates",
       "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
       "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"},
      {"decoder_rates", "[8, 8, 4, 4]"},
      {"decoder_dim", "8"},
      {"encoder_transformer_layers", "[0]"},
      {"encoder_transformer_layers", "[2, 0, 0, 0]"},
      {"encoder_transformer_layers", "[0, 0, 0, -1]"},
      {"downsample_factor", "[-2, -2]"},
      {"n_codebooks", "-1"},
      {"n_codebooks", "1e18"},
      {"codebook_size", "0"},
      {"semantic_codebook_size", "9223372036854775807"},
      {"codebook_dim", "0"},
      {"q_layers", "1000000"},
      {"q_dim", "-1"},
      {"q_dim", "9223372036854775807"},
      {"q_heads", "0"},
      {"q_head_dim", "31"},
      {"q_inter", "-1"},
      {"q_window", "0"},
      {"q_window", "9223372036854775807"},
      {"q_block_size", "-1"},
      {"head_dim", "0"},
      {"rope_base", "0"},
      {"norm_eps", "0"},
      {"norm_eps", "\"1e-5\""},
  };
  for (const auto& [key, value] : cases) {
    std::ofstream(path) << edited(key, value);
    try {
      Config::read(path);
      ADD_FAILURE() << key << ": " << value << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << key << ": " << value;
      EXPECT_THAT(error.message(), testing::HasSubstr(key)) << value;
    }
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace shoal::dac
