// A model small enough for tests.
#pragma once

#include "models/kokoro/config.h"

namespace shoal::kokoro {

// 32 samples a frame; no two widths are alike, so that one in the place of another shows.
inline Config small_config() {
  Config config;
  config.n_token = 14;
  config.hidden_dim = 10;
  config.style_dim = 128;
  config.n_layer = 2;
  config.max_dur = 9;
  config.text_encoder_kernel_size = 3;
  config.vocab = {{U' ', 3}, {U'a', 1}, {U'b', 13}, {U'ɡ', 7}};
  config.bert_dim = 12;
  config.bert_heads = 3;
  config.bert_intermediate = 20;
  config.bert_layers = 2;
  config.max_positions = 24;
  config.upsample_rates = {4, 2};
  config.upsample_kernel_sizes = {8, 4};
  config.upsample_initial_channel = 16;
  config.resblock_kernel_sizes = {3, 5};
  config.resblock_dilation_sizes = {{1, 2, 3}, {1, 3, 4}};
  config.gen_istft_n_fft = 8;
  config.gen_istft_hop_size = 2;
  config.embedding_dim = 6;
  config.decoder_width = 18;
  config.decoder_asr_width = 5;
  return config;
}

}  // namespace shoal::kokoro
