// The dimensions of a Kokoro model: the published values, or those of a config.json and its checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weights/checkpoint.h"

namespace shoal::kokoro {

constexpr int64_t kSampleRateHz = 24000;
constexpr int64_t kMostPhonemes = 510;  // code points of one utterance: rows of a voice, pads not counted
constexpr int64_t kResidualUnits = 3;   // of every residual block of the generator
constexpr std::array<int64_t, kResidualUnits> kNoiseDilations = {1, 3, 5};

// A phoneme of the vocabulary.
struct Symbol {
  char32_t code_point = 0;
  int32_t id = 0;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

// The sizes in kokoro/MODEL.md. Those of its parts "plbert" and "istftnet" stand beside the others.
struct Config {
  int64_t n_token = 0;
  int64_t hidden_dim = 0;
  int64_t style_dim = 0;  // half of a voice's row
  int64_t n_layer = 0;
  int64_t max_dur = 0;
  int64_t text_encoder_kernel_size = 0;
  std::vector<Symbol> vocab;  // by code point

  int64_t bert_dim = 0;           // hidden_size
  int64_t bert_heads = 0;         // num_attention_heads
  int64_t bert_intermediate = 0;  // intermediate_size
  int64_t bert_layers = 0;        // num_hidden_layers: passes through the one layer there is
  int64_t max_positions = 0;      // max_position_embeddings

  std::vector<int64_t> upsample_rates;
  std::vector<int64_t> upsample_kernel_sizes;
  int64_t upsample_initial_channel = 0;  // halved by every stage
  std::vector<int64_t> resblock_kernel_sizes;
  std::vector<std::vector<int64_t>> resblock_dilation_sizes;  // kResidualUnits for each kernel size
  int64_t gen_istft_n_fft = 0;
  int64_t gen_istft_hop_size = 0;

  // Not in config.json: the official code has them built in.
  int64_t embedding_dim = 128;  // of PLBERT's tables
  int64_t decoder_width = 1024;
  int64_t decoder_asr_width = 64;  // of asr_res
  int64_t harmonics = 9;           // sines of the source

  int64_t stages() const { return static_cast<int64_t>(upsample_rates.size()); }
  // Of noise_res[stage], whose dilations are kNoiseDilations: built in, too.
  int64_t noise_residual_kernel(int64_t stage) const { return stage + 1 < stages() ? 7 : 11; }
  // Samples per value of F0.
  int64_t samples_per_f0() const;
  int64_t samples_per_frame() const { return 2 * samples_per_f0(); }
  // Tokens of the longest utterance, without the two pads.
  int64_t most_phonemes() const;
  // Absent for a code point that is not in the vocabulary.
  std::optional<int32_t> id_of(char32_t code_point) const;

  // Kokoro-82M v1.0: the values in parentheses in kokoro/MODEL.md.
  static Config published();
  // Reads a config.json. Unknown keys are ignored; keys that would change the computation are refused. Throws
  // Error: invalid_argument (a missing key, a value out of range), unsupported, corrupt_file, not_found.
  static Config read(const std::string& path);
  // Takes the widths that config.json does not have from the shapes of the checkpoint's tensors, named as
  // normalise_kokoro_names leaves them. Throws Error: not_found, corrupt_file, invalid_argument.
  void take_widths(const weights::Checkpoint& checkpoint);

  // Throws Error(invalid_argument) naming the field, unless every value is in range and they fit together.
  // `where` starts the message (a file name).
  void validate(const std::string& where) const;
};

// Its 114 symbols, in the order of config.json.
std::vector<Symbol> published_vocabulary();

}  // namespace shoal::kokoro
