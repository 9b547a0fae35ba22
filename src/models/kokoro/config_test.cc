#include "models/kokoro/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "models/kokoro/fixtures_testing.h"
#include "weights/archives_testing.h"

namespace shoal::kokoro {
namespace {

using testing::HasSubstr;

// config.json of the published model, without most of its vocabulary.
constexpr const char* kPublished = R"({
  "istftnet": {
    "upsample_kernel_sizes": [20, 12],
    "upsample_rates": [10, 6],
    "gen_istft_hop_size": 5,
    "gen_istft_n_fft": 20,
    "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]],
    "resblock_kernel_sizes": [3, 7, 11],
    "upsample_initial_channel": 512
  },
  "dim_in": 64, "dropout": 0.2, "hidden_dim": 512, "max_conv_dim": 512, "max_dur": 50,
  "multispeaker": true, "n_layer": 3, "n_mels": 80, "n_token": 178, "style_dim": 128,
  "text_encoder_kernel_size": 5,
  "plbert": {
    "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 2048,
    "max_position_embeddings": 512, "num_hidden_layers": 12, "dropout": 0.1
  },
  "vocab": {";": 1, "\u0303": 17, "ɡ": 92, "𝄞": 177}
})";

// The text with the value of one key replaced.
std::string edited(const std::string& key, const std::string& value) {
  std::string text = kPublished;
  const size_t at = text.find('"' + key + '"');
  EXPECT_NE(at, std::string::npos) << key;
  const size_t begin = text.find(':', at) + 1;
  size_t end = text.find_first_of(",\n}", begin);
  if (text[begin + 1] == '[')
    end = text.find(text[begin + 2] == '[' ? "]]" : "]", begin) + (text[begin + 2] == '[' ? 2 : 1);
  if (text[begin + 1] == '{') end = text.find('}', begin) + 1;
  return text.replace(begin, end - begin, value);
}

TEST(KokoroConfig, PublishedValuesAreConsistent) {
  const Config config = Config::published();
  config.validate("published");
  EXPECT_EQ(config.samples_per_frame(), 600);
  EXPECT_EQ(config.samples_per_f0(), 300);
  EXPECT_EQ(config.most_phonemes(), 510);
}

TEST(KokoroConfig, HasThePublishedVocabulary) {
  const Config config = Config::published();
  EXPECT_EQ(config.vocab.size(), 114u);
  const std::pair<char32_t, int32_t> known[] = {{U';', 1},   {U' ', 16}, {U'\u0303', 17}, {U'\uAB67', 23},
                                                {U'A', 24},  {U'a', 43}, {U'z', 68},      {U'ɡ', 92},
                                                {U'ˈ', 156}, {U'ᵻ', 177}};
  for (const auto& [code_point, id] : known) EXPECT_EQ(config.id_of(code_point), id) << id;
  for (const char32_t absent : {U'g', U'\'', U'-', U'0', U'\u0329', U'\u0361', U'\0', U'\U0010FFFF'})
    EXPECT_EQ(config.id_of(absent), std::nullopt) << static_cast<uint32_t>(absent);
}

TEST(KokoroConfig, ReadsAConfiguration) {
  const TemporaryFolder folder;
  Config config = Config::read(folder.write("config.json", kPublished));
  EXPECT_EQ(config.vocab, (std::vector<Symbol>{{U';', 1}, {U'ɡ', 92}, {U'\u0303', 17}, {U'𝄞', 177}}));
  const Config published = Config::published();
  EXPECT_EQ(config.n_token, published.n_token);
  EXPECT_EQ(config.hidden_dim, published.hidden_dim);
  EXPECT_EQ(config.max_dur, published.max_dur);
  EXPECT_EQ(config.bert_intermediate, published.bert_intermediate);
  EXPECT_EQ(config.bert_layers, published.bert_layers);
  EXPECT_EQ(config.upsample_kernel_sizes, published.upsample_kernel_sizes);
  EXPECT_EQ(config.resblock_dilation_sizes, published.resblock_dilation_sizes);
}

TEST(KokoroConfig, HostileValuesAreRefusedByName) {
  const TemporaryFolder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"n_token", "1"},
      {"n_token", "100"},  // an id of the vocabulary is beyond it: vocab is named
      {"n_token", "\"178\""},
      {"hidden_dim", "0"},
      {"hidden_dim", "511"},
      {"hidden_dim", "4611686018427387904"},
      {"style_dim", "64"},
      {"n_layer", "-1"},
      {"n_layer", "1000000"},
      {"max_dur", "0"},
      {"text_encoder_kernel_size", "4"},
      {"text_encoder_kernel_size", "7"},
      {"text_encoder_kernel_size", "65"},
      {"hidden_size", "-768"},
      {"num_attention_heads", "0"},
      {"num_attention_heads", "7"},
      {"intermediate_size", "9223372036854775807"},
      {"max_position_embeddings", "2"},
      {"num_hidden_layers", "100"},
      {"upsample_rates", "[]"},
      {"upsample_rates", "[10]"},
      {"upsample_rates", "[10, 1]"},
      {"upsample_rates", "[0, 6]"},
      {"upsample_rates", "[4611686018427387904, 4611686018427387904]"},
      {"upsample_kernel_sizes", "[20, 13]"},
      {"upsample_kernel_sizes", "[30, 12, 3]"},
      {"upsample_kernel_sizes", "[10, 4]"},
      {"upsample_kernel_sizes", "[20, -12]"},
      {"upsample_initial_channel", "2"},
      {"upsample_initial_channel", "510"},
      {"resblock_kernel_sizes", "[3, 7, 10]"},
      {"resblock_kernel_sizes", "[]"},
      {"resblock_dilation_sizes", "[[1, 3, 5], [1, 3, 5]]"},
      {"resblock_dilation_sizes", "[[1, 3, 5], [1, 3, 5], [1, 3]]"},
      {"resblock_dilation_sizes", "[[1, 3, 5], [1, 3, 5], [1, 3, 0]]"},
      {"resblock_dilation_sizes", "[[1, 3, 5], [1, 3, 5], [1, 3, 9]]"},
      {"gen_istft_n_fft", "21"},
      {"gen_istft_n_fft", "128"},
      {"gen_istft_hop_size", "0"},
      {"gen_istft_hop_size", "3"},
      {"vocab", "{}"},
      {"vocab", "{\"ab\": 1}"},
      {"vocab", "{\"\": 1}"},
      {"vocab", "{\"a\": 0}"},
      {"vocab", "{\"a\": 178}"},
      {"vocab", "{\"a\": \"b\"}"},
      {"vocab", "[]"},
  };
  for (const auto& [key, value] : cases) {
    const std::string path = folder.write("config.json", edited(key, value));
    const std::string message = weights::message_of([&] { Config::read(path); });
    EXPECT_EQ(weights::code_of([&] { Config::read(path); }), ErrorCode::invalid_argument)
        << key << ": " << value;
    const bool names_it =
        message.find(key) != std::string::npos || message.find("vocab") != std::string::npos ||
        message.find("upsample") != std::string::npos || message.find("istft_n_fft") != std::string::npos;
    EXPECT_TRUE(names_it) << key << ": " << message;
  }
}

TEST(KokoroConfig, EveryKeyIsRequired) {
  const TemporaryFolder folder;
  for (const char* key : {"n_token",
                          "hidden_dim",
                          "style_dim",
                          "n_layer",
                          "max_dur",
                          "text_encoder_kernel_size",
                          "plbert",
                          "istftnet",
                          "vocab",
                          "hidden_size",
                          "num_attention_heads",
                          "intermediate_size",
                          "max_position_embeddings",
                          "num_hidden_layers",
                          "upsample_rates",
                          "upsample_kernel_sizes",
                          "upsample_initial_channel",
                          "resblock_kernel_sizes",
                          "resblock_dilation_sizes",
                          "gen_istft_n_fft",
                          "gen_istft_hop_size"}) {
    std::string text = kPublished;
    text.replace(text.find('"' + std::string(key) + '"') + 1, 1, "_");
    const std::string path = folder.write("config.json", text);
    EXPECT_THAT(weights::message_of([&] { Config::read(path); }), HasSubstr(key));
  }
}

TEST(KokoroConfig, OtherBertVariantsAreRefused) {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& more) {
    std::string text = kPublished;
    text.insert(text.find("\"hidden_size\""), more + ", ");
    return folder.write("config.json", text);
  };
  for (const char* more : {R"("num_hidden_groups": 2)", R"("inner_group_num": 3)", R"("hidden_act": "gelu")",
                           R"("layer_norm_eps": 1e-5)", R"("position_embedding_type": "relative_key")"}) {
    EXPECT_EQ(weights::code_of([&] { Config::read(with(more)); }), ErrorCode::unsupported) << more;
  }
  Config::read(with(R"("num_hidden_groups": 1, "hidden_act": "gelu_new", "layer_norm_eps": 1e-12)"));
}

// A checkpoint of zeros with these shapes.
weights::Checkpoint checkpoint_of(const TemporaryFolder& folder,
                                  const std::vector<std::pair<std::string, std::vector<int64_t>>>& shapes) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const auto& [name, shape] : shapes) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    items.emplace_back(
        name, weights::pickle_tensor({.storage_elements = 4096, .shape = shape, .strides = strides}));
  }
  return weights::Checkpoint::open(folder.write(
      "m.pth", weights::zip_file({{"m/data.pkl", weights::pickle_file(weights::pickle_dict(items))},
                                  {"m/data/0", std::string(4096 * 4, '\0')}})));
}

TEST(KokoroConfig, WidthsComeFromTheCheckpoint) {
  const TemporaryFolder folder;
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {
      {"bert.embeddings.word_embeddings.weight", {178, 16}},
      {"decoder.encode.conv1.bias", {48}},
      {"decoder.asr_res.0.bias", {20}},
      {"decoder.generator.m_source.l_linear.weight", {1, 9}}};
  Config config = Config::published();
  config.take_widths(checkpoint_of(folder, shapes));
  EXPECT_EQ(config.embedding_dim, 16);
  EXPECT_EQ(config.decoder_width, 48);
  EXPECT_EQ(config.decoder_asr_width, 20);

  const auto code_with = [&](size_t i, std::vector<int64_t> shape) {
    auto other = shapes;
    other[i].second = std::move(shape);
    return weights::code_of([&] { Config::published().take_widths(checkpoint_of(folder, other)); });
  };
  EXPECT_EQ(code_with(1, {48, 1}), ErrorCode::corrupt_file);
  EXPECT_EQ(code_with(2, {0}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_with(3, {1, 8}), ErrorCode::invalid_argument) << "eight harmonics";
  shapes.pop_back();
  EXPECT_EQ(weights::code_of([&] { Config::published().take_widths(checkpoint_of(folder, shapes)); }),
            ErrorCode::not_found);
}

TEST(KokoroConfig, ReadsTheFixtures) {
  const Config config = Config::read(kFixture + "/config.json");
  Config published = Config::published();
  EXPECT_EQ(config.vocab, published.vocab);
  EXPECT_EQ(config.samples_per_frame(), 600);
}

}  // namespace
}  // namespace shoal::kokoro
