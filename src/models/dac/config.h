// The codec's dimensions: the published values, or those of a codec_config.json beside a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::dac {

// The longest clip of any window transformer, in its own rows (the newest reference code's RoPE table).
constexpr int64_t kMaxPositions = 327680;

// Defaults are those of keys that a codec_config.json may omit; all others are required. latent_dim, q_dim,
// q_inter 0 on input mean "derive"; read() and published() fill them in.
struct Config {
  int64_t sample_rate_hz = 0;
  int64_t encoder_dim = 0;                          // channels after encoder.block.0; doubled by every block
  std::vector<int64_t> encoder_rates;               // strides of the encoder blocks
  std::vector<int64_t> encoder_transformer_layers;  // per encoder block, often 0
  int64_t decoder_dim = 0;                          // channels after decoder.model.0; halved by every block
  std::vector<int64_t> decoder_rates;               // strides of the decoder blocks
  int64_t latent_dim = 0;                           // default encoder_dim * 2^blocks
  std::vector<int64_t> downsample_factor;           // of the quantiser; upsampled in reverse order

  int64_t n_codebooks = 0;  // residual codebooks; the semantic one comes on top
  int64_t codebook_size = 0;
  int64_t semantic_codebook_size = 0;
  int64_t codebook_dim = 0;

  // pre_module and post_module
  // Their width; if it differs from latent_dim (the default), linear maps convert at both ends.
  int64_t q_dim = 0;
  int64_t q_layers = 0, q_heads = 0, q_head_dim = 64;
  int64_t q_inter = 0;  // default 3 * q_dim
  int64_t q_window = 0;
  int64_t q_block_size = 4096;  // RoPE rows made at load; more are made when a clip needs them

  // transformers of the encoder blocks: dim / 64 heads (hard-coded in the reference), intermediate 3 * dim
  int64_t head_dim = 64;
  int64_t enc_window = 512;
  int64_t enc_block_size = 16384;

  double rope_base = 10000;
  float norm_eps = 1e-5f;  // of the transformers; the ConvNeXt blocks have 1e-6

  // One row of codes: the semantic code, then the residual ones.
  int64_t num_codebooks() const { return n_codebooks + 1; }
  int64_t latents_per_frame() const;  // product of downsample_factor
  int64_t samples_per_frame() const;  // product of encoder_rates and downsample_factor
  double frames_per_second() const;
  // Entries of all codebooks together, semantic first: rows of the projected code table.
  int64_t total_codes() const { return semantic_codebook_size + n_codebooks * codebook_size; }

  // S1-mini and S2-Pro.
  static Config published();
  // Reads a codec_config.json (keys: tests/data/fish/set_a). Unknown keys are ignored. Throws Error:
  // invalid_argument (a missing key, a value out of range), corrupt_file, not_found.
  static Config read(const std::string& path);

  // Throws Error(invalid_argument) naming the field, unless every value is in range and they fit together.
  // `where` starts the message (a file name).
  void validate(const std::string& where) const;
};

}  // namespace shoal::dac
