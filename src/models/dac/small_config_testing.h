// A codec small enough for tests.
#pragma once

#include "models/dac/config.h"

namespace shoal::dac {

// 12 samples a frame, 3 codebooks; the transformers' window is shorter than a key/value page.
inline Config small_config() {
  Config config;
  config.sample_rate_hz = 8000;
  config.encoder_dim = 6;
  config.encoder_rates = {2, 3};
  config.encoder_transformer_layers = {0, 0};
  config.decoder_dim = 20;
  config.decoder_rates = {3, 2};
  config.latent_dim = 20;
  config.downsample_factor = {2};
  config.n_codebooks = 2;
  config.codebook_size = 16;
  config.semantic_codebook_size = 40;
  config.codebook_dim = 4;
  config.q_dim = 20;
  config.q_layers = 2;
  config.q_heads = 3;
  config.q_head_dim = 8;
  config.q_inter = 24;
  config.q_window = 5;
  return config;
}

}  // namespace shoal::dac
