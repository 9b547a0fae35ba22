#include "models/dual_ar/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "base/error.h"
#include "models/dual_ar/inventory.h"

namespace shoal::dual_ar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kFixtures = std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish";

Config parse(const std::string& text) { return Config::parse(Json::parse(text, "config.json")); }

std::string message_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

// Every required key, and `more`.
std::string flat(const std::string& more) {
  return R"({"model_type": "dual_ar", "vocab_size": 99, "n_layer": 3, "n_head": 6, "dim": 96,
             "num_codebooks": 4, "codebook_size": 8)" +
         more + "}";
}

TEST(Config, ReadsTheFlatForm) {
  const Config config = Config::read(kFixtures + "/set_a/config.json");
  EXPECT_EQ(config.family, Family::s1);
  EXPECT_EQ(config.vocab_size, 576);
  EXPECT_EQ(config.max_positions, 4096);
  EXPECT_EQ(config.slow.dim, 64);
  EXPECT_EQ(config.slow.heads, 4);
  EXPECT_EQ(config.slow.kv_heads, 2);
  EXPECT_EQ(config.slow.head_dim, 32);
  EXPECT_EQ(config.fast.head_dim, 16);
  EXPECT_TRUE(config.slow.qk_norm);
  EXPECT_FALSE(config.fast.qk_norm);
  EXPECT_FLOAT_EQ(config.fast.norm_eps, 1e-6f);
  EXPECT_DOUBLE_EQ(config.rope_base, 1e6);
  EXPECT_FALSE(config.tied_head);
  EXPECT_TRUE(config.scale_codebook_embeddings);
  EXPECT_FALSE(config.norm_fast_input);
  EXPECT_EQ(config.semantic_begin, -1);
}

TEST(Config, ReadsTheNestedForm) {
  const Config config = Config::read(kFixtures + "/set_s2/config.json");
  EXPECT_EQ(config.family, Family::s2);
  EXPECT_EQ(config.codebook_size, 48);
  EXPECT_EQ(config.max_positions, 4096) << "audio_decoder_config's own max_seq_len is not read";
  EXPECT_EQ(config.slow_layers, 3);
  EXPECT_EQ(config.fast_layers, 2);
  EXPECT_EQ(config.slow.hidden, 208);
  EXPECT_TRUE(config.slow.qk_norm);
  EXPECT_FALSE(config.fast.qk_norm);
  EXPECT_TRUE(config.tied_head);
  EXPECT_TRUE(config.scale_codebook_embeddings) << "forced by the reference's loader";
  EXPECT_TRUE(config.norm_fast_input) << "forced by the reference's loader";
  EXPECT_EQ(config.semantic_begin, 524);
  EXPECT_EQ(config.semantic_end, 571);
  EXPECT_EQ(config.im_end, 514);
}

TEST(Config, AbsentKeysHaveTheReferenceDefaults) {
  const Config config = parse(flat(""));
  EXPECT_EQ(config.slow.kv_heads, 6);
  EXPECT_EQ(config.slow.head_dim, 64);
  EXPECT_EQ(config.slow.hidden, 256);  // 8 * 96 / 3, to a multiple of 256
  EXPECT_FLOAT_EQ(config.slow.norm_eps, 1e-5f);
  EXPECT_DOUBLE_EQ(config.rope_base, 10000);
  EXPECT_EQ(config.fast.dim, 96);
  EXPECT_EQ(config.fast.head_dim, 64);
  EXPECT_FALSE(config.scale_codebook_embeddings);
}

TEST(Config, NullStandsForTheDerivedValue) {
  const Config config = parse(flat(R"(, "head_dim": null, "intermediate_size": null, "n_local_heads": -1,
      "attention_qk_norm": true, "fast_attention_qk_norm": null, "fast_dim": null, "fast_head_dim": null)"));
  EXPECT_EQ(config.slow.head_dim, 16);
  EXPECT_EQ(config.slow.hidden, 256);
  EXPECT_EQ(config.slow.kv_heads, 6);
  EXPECT_EQ(config.fast.head_dim, 16);
  EXPECT_TRUE(config.fast.qk_norm);
}

TEST(Config, ErrorsNameTheKeyTheRangeAndTheValue) {
  EXPECT_THAT(message_of(flat(R"(, "head_dim": 7)")),
              AllOf(HasSubstr("config.json: head_dim"), HasSubstr("even"), HasSubstr("7")));
  EXPECT_THAT(message_of(flat(R"(, "n_local_heads": 4)")),
              AllOf(HasSubstr("n_local_heads"), HasSubstr("6"), HasSubstr("got 4")));
  EXPECT_THAT(message_of(flat(R"(, "fast_n_local_heads": 4)")), HasSubstr("config.json: fast_n_local_heads"));
  EXPECT_THAT(message_of(flat(R"(, "max_seq_len": 99999999999)")),
              AllOf(HasSubstr("max_seq_len must be in 2..1048576"), HasSubstr("got 99999999999")));
  EXPECT_THAT(message_of(flat(R"(, "intermediate_size": -1)")), HasSubstr("intermediate_size"));
  EXPECT_THAT(message_of(flat(R"(, "norm_eps": 0)")), HasSubstr("norm_eps"));
  EXPECT_THAT(message_of(flat(R"(, "rope_base": "big")")), HasSubstr("rope_base"));
  EXPECT_THAT(message_of(R"({"model_type": "naive"})"), HasSubstr("got \"naive\""));
  EXPECT_THAT(message_of(R"({"model_type": "dual_ar", "n_layer": 2})"), HasSubstr("vocab_size"));
  EXPECT_THAT(message_of(R"({"model_type": "fish_qwen3_omni", "audio_decoder_config": {}})"),
              HasSubstr("text_config"));
  EXPECT_THAT(message_of(R"({"model_type": "fish_qwen3_omni", "audio_decoder_config": {"num_codebooks": 17},
      "text_config": {"vocab_size": 9, "n_layer": 1, "n_head": 1, "dim": 8}})"),
              AllOf(HasSubstr("config.json: audio_decoder_config.num_codebooks"), HasSubstr("1..16")));
  EXPECT_THAT(message_of("[1]"), ::testing::Not(HasSubstr("no error")));
}

TEST(Config, PublishedSizesGiveTheKnownParameterCount) {
  const Config config = Config::s1_mini();
  const auto layer = [](const BlockConfig& b) {
    return b.dim * (b.qkv_width() + b.attention_width() + 3 * b.hidden + 2) +
           (b.qk_norm ? 2 * b.head_dim : 0);
  };
  EXPECT_EQ(config.slow_layers * layer(config.slow), 440466432);
  EXPECT_EQ(config.fast_layers * layer(config.fast), 50339840);
  EXPECT_EQ(config.residual_codes(), 1024);
}

// 4,561,852,416 parameters in 358 tensors: the published inventory of S2-Pro.
TEST(Config, SizesOfS2ProGiveTheKnownInventory) {
  const Config config = Config::s2_pro();
  EXPECT_EQ(config.residual_codes(), 1024);
  EXPECT_NO_THROW(check_token_ids(config));
  int64_t parameters = 0;
  const std::vector<RequiredTensor> tensors = required_tensors(config);
  for (const RequiredTensor& tensor : tensors) parameters += tensor.shape.elements();
  EXPECT_EQ(std::ssize(tensors), 358);
  EXPECT_EQ(parameters, 4561852416);
}

TEST(Config, TokenIdsAreCheckedAgainstTheVocabulary) {
  Config config = Config::s1_mini();
  EXPECT_NO_THROW(check_token_ids(config));
  config.im_end = config.semantic_begin + 5;
  EXPECT_THROW(check_token_ids(config), Error);
  config = Config::s1_mini();
  config.semantic_end = 155776;
  EXPECT_THROW(check_token_ids(config), Error);
  config = Config::s1_mini();
  config.semantic_begin = -1;
  EXPECT_THROW(check_token_ids(config), Error);
}

}  // namespace
}  // namespace shoal::dual_ar
