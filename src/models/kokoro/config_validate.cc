// The limits of this model family and of the ops.
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "models/kokoro/config.h"
#include "models/kokoro/rows.h"
#include "ops/harmonic_source.h"

namespace shoal::kokoro {
namespace {

// Far above the published sizes; low enough that no product of two overflows and hostile files stay small.
constexpr int64_t kMostChannels = 16384;
constexpr int64_t kMostStages = 6;
constexpr int64_t kMostSamplesPerF0 = 4096;
constexpr int64_t kMostKernel = 63;
constexpr int64_t kMostPoints = 64;  // ops/short_stft.h
constexpr int64_t kStyleDim = 128;   // the official code splits a voice's row there
constexpr int64_t kMostVocabulary = 65536;

class Validator {
 public:
  explicit Validator(const std::string& where) : where_(where) {}

  void within(std::string_view field, int64_t value, int64_t least, int64_t most) const {
    require(value >= least && value <= most, field, ": expected ", least, " to ", most, ", got ", value);
  }
  void odd_kernel(std::string_view field, int64_t value) const {
    within(field, value, 1, kMostKernel);
    require(value % 2 == 1, field, ": expected an odd number, got ", value);
  }
  template <typename... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) fail(ErrorCode::invalid_argument, where_, ": ", parts...);
  }

 private:
  const std::string& where_;
};

void check_plbert(const Validator& check, const Config& config) {
  check.within("plbert.hidden_size", config.bert_dim, 1, kMostChannels);
  check.within("plbert.num_attention_heads", config.bert_heads, 1, 256);
  check.require(config.bert_dim % config.bert_heads == 0,
                "plbert.num_attention_heads: expected a divisor of hidden_size ", config.bert_dim, ", got ",
                config.bert_heads);
  check.within("plbert.intermediate_size", config.bert_intermediate, 1, 4 * kMostChannels);
  check.within("plbert.max_position_embeddings", config.max_positions, 3, 65536);
  check.within("plbert.num_hidden_layers", config.bert_layers, 1, 64);
  check.within("embedding width of plbert", config.embedding_dim, 1, kMostChannels);
}

// Rates of at least 2, because the convolution of the noise gives a row too many at 1; kernels are a multiple
// of their rates (ops/packed_matrix.h) by which both ends lose equally many rows.
void check_upsampling(const Validator& check, const Config& config) {
  check.within("length of istftnet.upsample_rates", config.stages(), 1, kMostStages);
  check.require(config.upsample_kernel_sizes.size() == config.upsample_rates.size(),
                "length of istftnet.upsample_kernel_sizes: expected one per rate, ", config.stages(),
                ", got ", config.upsample_kernel_sizes.size());
  int64_t left = kMostSamplesPerF0;
  for (size_t i = 0; i < config.upsample_rates.size(); ++i) {
    const int64_t rate = config.upsample_rates[i], kernel = config.upsample_kernel_sizes[i];
    check.within("istftnet.upsample_rates", rate, 2, left);
    left /= rate;
    check.within("istftnet.upsample_kernel_sizes", kernel, rate, 8 * rate);
    check.require(kernel % rate == 0 && (kernel - rate) % 2 == 0, "istftnet.upsample_kernel_sizes: expected ",
                  "a multiple of the rate ", rate, " that is an even number above it, got ", kernel);
  }
  check.within("istftnet.gen_istft_hop_size", config.gen_istft_hop_size, 1, left);
  check.require(config.samples_per_f0() % 2 == 0, "istftnet.gen_istft_hop_size: expected an even number of ",
                "samples for a value of F0, got ", config.samples_per_f0());
  check.within("istftnet.gen_istft_n_fft", config.gen_istft_n_fft, 2, kMostPoints);
  check.require(config.gen_istft_n_fft % 2 == 0 && config.gen_istft_n_fft % config.gen_istft_hop_size == 0,
                "istftnet.gen_istft_n_fft: expected an even multiple of the hop size ",
                config.gen_istft_hop_size, ", got ", config.gen_istft_n_fft);
  check.within("istftnet.upsample_initial_channel", config.upsample_initial_channel,
               int64_t{1} << config.stages(), kMostChannels);
  check.require(config.upsample_initial_channel % (int64_t{1} << config.stages()) == 0,
                "istftnet.upsample_initial_channel: expected a multiple of ", int64_t{1} << config.stages(),
                ", got ", config.upsample_initial_channel);
}

// Utterances of a batch are kGap frames (or tokens) apart.
void check_reach(const Validator& check, std::string_view field, int64_t kernel, int64_t dilation,
                 int64_t rows_per_frame) {
  const int64_t reach = (kernel - 1) / 2 * dilation;
  check.require(reach <= kGap * rows_per_frame, field, ": expected a convolution that looks at most ",
                kGap * rows_per_frame, " rows to each side, got ", reach);
}

void check_residual_blocks(const Validator& check, const Config& config) {
  const size_t blocks = config.resblock_kernel_sizes.size();
  check.within("length of istftnet.resblock_kernel_sizes", static_cast<int64_t>(blocks), 1, 8);
  check.require(config.resblock_dilation_sizes.size() == blocks,
                "length of istftnet.resblock_dilation_sizes: expected one per kernel size, ", blocks,
                ", got ", config.resblock_dilation_sizes.size());
  for (const int64_t kernel : config.resblock_kernel_sizes)
    check.odd_kernel("istftnet.resblock_kernel_sizes", kernel);
  for (const std::vector<int64_t>& dilations : config.resblock_dilation_sizes) {
    check.within("length of istftnet.resblock_dilation_sizes", static_cast<int64_t>(dilations.size()),
                 kResidualUnits, kResidualUnits);
    for (const int64_t dilation : dilations)
      check.within("istftnet.resblock_dilation_sizes", dilation, 1, kMostKernel);
  }
  int64_t rows_per_frame = 2;
  for (int64_t stage = 0; stage < config.stages(); ++stage) {
    const int64_t rate = config.upsample_rates[static_cast<size_t>(stage)];
    rows_per_frame *= rate;
    check_reach(check, "istftnet.upsample_rates (noise_res)", config.noise_residual_kernel(stage),
                kNoiseDilations.back(), rows_per_frame);
    for (size_t i = 0; i < blocks; ++i) {
      for (const int64_t dilation : config.resblock_dilation_sizes[i])
        check_reach(check, "istftnet.resblock_dilation_sizes", config.resblock_kernel_sizes[i], dilation,
                    rows_per_frame);
    }
  }
}

}  // namespace

void Config::validate(const std::string& where) const {
  const Validator check(where);
  check.within("n_token", n_token, 2, kMostVocabulary);
  check.within("hidden_dim", hidden_dim, 2, kMostChannels);
  check.require(hidden_dim % 2 == 0, "hidden_dim: expected an even number, got ", hidden_dim);
  check.within("style_dim", style_dim, kStyleDim, kStyleDim);
  check.within("n_layer", n_layer, 1, 32);
  check.within("max_dur", max_dur, 1, 1024);
  check.odd_kernel("text_encoder_kernel_size", text_encoder_kernel_size);
  check_reach(check, "text_encoder_kernel_size", text_encoder_kernel_size, 1, 1);
  check_plbert(check, *this);
  check_upsampling(check, *this);
  check_residual_blocks(check, *this);
  check.within("width of the decoder", decoder_width, 1, kMostChannels);
  check.within("width of asr_res", decoder_asr_width, 1, kMostChannels);
  check.within("harmonics of the source", harmonics, ops::kHarmonics, ops::kHarmonics);
  check.require(!vocab.empty(), "vocab: expected at least one symbol, got none");
}

}  // namespace shoal::kokoro
