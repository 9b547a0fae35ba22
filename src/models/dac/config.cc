#include "models/dac/config.h"

#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace shoal::dac {
namespace {

// Far above any codec; low enough that no product of two sizes overflows and hostile files stay small.
constexpr int64_t kMostChannels = 16384;
constexpr int64_t kMostBlocks = 8;
constexpr int64_t kMostLayers = 64;
constexpr int64_t kMostCodes = int64_t{1} << 20;
constexpr int64_t kMostSamplesPerFrame = int64_t{1} << 16;

int64_t product(const std::vector<int64_t>& factors) {
  int64_t result = 1;
  for (const int64_t factor : factors) result *= factor;
  return result;
}

class Validator {
 public:
  explicit Validator(const std::string& where) : where_(where) {}

  void within(std::string_view field, int64_t value, int64_t least, int64_t most) const {
    if (value < least || value > most)
      fail(ErrorCode::invalid_argument, where_, ": ", field, ": expected ", least, " to ", most, ", got ",
           value);
  }
  // 1 to kMostBlocks factors whose product is at most kMostSamplesPerFrame.
  void factors(std::string_view field, const std::vector<int64_t>& values) const {
    within(concat("length of ", field), static_cast<int64_t>(values.size()), 1, kMostBlocks);
    int64_t left = kMostSamplesPerFrame;
    for (const int64_t value : values) {
      within(field, value, 1, left);
      left /= value;
    }
  }
  template <typename... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) fail(ErrorCode::invalid_argument, where_, ": ", parts...);
  }

 private:
  const std::string& where_;
};

std::vector<int64_t> integers(const Json& array) {
  std::vector<int64_t> values;
  for (const Json& value : array.as_array()) values.push_back(value.as_integer());
  return values;
}

void read_optional(const Json& document, std::string_view key, int64_t& value) {
  if (const Json* found = document.find(key)) value = found->as_integer();
}

// latent_dim, q_dim and q_inter, where they were left out. Sizes that would overflow are left for validate to
// name.
void derive_sizes(Config& config) {
  const bool sane = config.encoder_dim >= 1 && config.encoder_dim <= kMostChannels &&
                    config.encoder_rates.size() <= static_cast<size_t>(kMostBlocks);
  if (config.latent_dim == 0 && sane) config.latent_dim = config.encoder_dim << config.encoder_rates.size();
  if (config.q_dim == 0) config.q_dim = config.latent_dim;
  if (config.q_inter == 0 && config.q_dim <= kMostChannels) config.q_inter = 3 * config.q_dim;
}

}  // namespace

int64_t Config::latents_per_frame() const { return product(downsample_factor); }

int64_t Config::samples_per_frame() const { return product(encoder_rates) * product(downsample_factor); }

double Config::frames_per_second() const {
  return static_cast<double>(sample_rate_hz) / static_cast<double>(samples_per_frame());
}

Config Config::published() {
  Config config;
  config.sample_rate_hz = 44100;
  config.encoder_dim = 64;
  config.encoder_rates = {2, 4, 8, 8};
  config.encoder_transformer_layers = {0, 0, 0, 4};
  config.decoder_dim = 1536;
  config.decoder_rates = {8, 8, 4, 2};
  config.downsample_factor = {2, 2};
  config.n_codebooks = 9;
  config.codebook_size = 1024;
  config.semantic_codebook_size = 4096;
  config.codebook_dim = 8;
  config.q_layers = 8;
  config.q_heads = 16;
  config.q_window = 128;
  derive_sizes(config);
  return config;
}

Config Config::read(const std::string& path) {
  const Json document = Json::read_file(path, kMaxConfigBytes);
  Config config;
  config.sample_rate_hz = document.at("sample_rate").as_integer();
  config.encoder_dim = document.at("encoder_dim").as_integer();
  config.encoder_rates = integers(document.at("encoder_rates"));
  config.encoder_transformer_layers = integers(document.at("encoder_transformer_layers"));
  config.decoder_dim = document.at("decoder_dim").as_integer();
  config.decoder_rates = integers(document.at("decoder_rates"));
  read_optional(document, "latent_dim", config.latent_dim);
  config.downsample_factor = integers(document.at("downsample_factor"));
  config.n_codebooks = document.at("n_codebooks").as_integer();
  config.codebook_size = document.at("codebook_size").as_integer();
  config.semantic_codebook_size = document.at("semantic_codebook_size").as_integer();
  config.codebook_dim = document.at("codebook_dim").as_integer();
  read_optional(document, "q_dim", config.q_dim);
  config.q_layers = document.at("q_layers").as_integer();
  config.q_heads = document.at("q_heads").as_integer();
  read_optional(document, "q_head_dim", config.q_head_dim);
  read_optional(document, "q_inter", config.q_inter);
  config.q_window = document.at("q_window").as_integer();
  read_optional(document, "q_block_size", config.q_block_size);
  read_optional(document, "head_dim", config.head_dim);
  read_optional(document, "enc_window", config.enc_window);
  read_optional(document, "enc_block_size", config.enc_block_size);
  if (const Json* base = document.find("rope_base")) config.rope_base = base->as_number();
  if (const Json* eps = document.find("norm_eps")) config.norm_eps = static_cast<float>(eps->as_number());
  derive_sizes(config);
  config.validate(path);
  return config;
}

void Config::validate(const std::string& where) const {
  const Validator check(where);
  check.within("sample_rate", sample_rate_hz, 1, 768000);
  check.factors("encoder_rates", encoder_rates);
  check.factors("decoder_rates", decoder_rates);
  check.factors("downsample_factor", downsample_factor);
  check.require(product(encoder_rates) == product(decoder_rates), "decoder_rates: expected the product of ",
                "encoder_rates, ", product(encoder_rates), ", got ", product(decoder_rates));
  check.within("samples per frame", samples_per_frame(), 1, kMostSamplesPerFrame);

  check.within("encoder_dim", encoder_dim, 1, kMostChannels >> encoder_rates.size());
  check.within("decoder_dim", decoder_dim, int64_t{1} << decoder_rates.size(), kMostChannels);
  check.within("latent_dim", latent_dim, 1, kMostChannels);
  check.require(encoder_transformer_layers.size() == encoder_rates.size(),
                "length of encoder_transformer_layers: expected one per encoder block, ",
                encoder_rates.size(), ", got ", encoder_transformer_layers.size());
  for (size_t i = 0; i < encoder_transformer_layers.size(); ++i) {
    check.within("encoder_transformer_layers", encoder_transformer_layers[i], 0, kMostLayers);
    check.require(encoder_transformer_layers[i] == 0 || encoder_dim << (i + 1) >= 64,
                  "encoder_transformer_layers: a transformer needs a block of at least 64 channels, block ",
                  i + 1, " has ", encoder_dim << (i + 1));
  }

  check.within("n_codebooks", n_codebooks, 0, 63);
  check.within("codebook_size", codebook_size, 1, kMostCodes);
  check.within("semantic_codebook_size", semantic_codebook_size, 1, kMostCodes);
  check.within("codebook_dim", codebook_dim, 1, 1024);
  check.within("codes of all codebooks together", total_codes(), 1, kMostCodes);

  check.within("q_dim", q_dim, 1, kMostChannels);
  check.within("q_layers", q_layers, 0, kMostLayers);
  check.within("q_heads", q_heads, 1, 256);
  check.within("q_head_dim", q_head_dim, 2, 512);
  check.within("head_dim", head_dim, 2, 512);
  check.require(q_head_dim % 2 == 0 && head_dim % 2 == 0,
                "q_head_dim and head_dim: expected even numbers, got ", q_head_dim, " and ", head_dim);
  check.within("q_inter", q_inter, 1, 4 * kMostChannels);
  check.within("q_window", q_window, 1, 65536);
  check.within("enc_window", enc_window, 1, 65536);
  check.within("q_block_size", q_block_size, 1, kMaxPositions);
  check.within("enc_block_size", enc_block_size, 1, kMaxPositions);
  check.require(rope_base >= 1 && rope_base <= 1e9, "rope_base: expected 1 to 1e9, got ", rope_base);
  check.require(norm_eps > 0 && norm_eps <= 1e-2f, "norm_eps: expected above 0 and at most 0.01, got ",
                norm_eps);
}

}  // namespace shoal::dac
