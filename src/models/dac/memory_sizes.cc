// What a codec's passes take of the device's memory, stage by stage as decoder.cc and encoder.cc run.
#include <algorithm>

#include "models/dac/batch.h"
#include "models/dac/codec.h"
#include "models/dac/decoder.h"
#include "models/dac/encoder.h"

namespace shoal::dac {
namespace {

constexpr int64_t kFloat = sizeof(float);

struct Planned {
  Planned(const Config& c, DType t, Device d)
      : config(c), dtype(t), device(d), input_bytes(ops::computes_by_itself(d) ? size_of(t) : kFloat) {}

  const Config& config;
  DType dtype;
  Device device;
  int64_t input_bytes;  // of one value that a product reads, once it has been rounded
};

// How many rows of a stage are in work at a time.
int64_t rows_in_work(const Planned& m, int64_t rows, int64_t bytes_per_row, int threads) {
  return std::min(rows, rows_in_cache(m.device, threads, bytes_per_row));
}

// A ConvNeXt block beside its rows.
int64_t conv_next_workspace(const Planned& m, int64_t rows) {
  return rows * m.config.latent_dim * (5 * kFloat + 4 * size_of(m.dtype));
}

int64_t q_transformer_workspace(const Planned& m, int64_t frames) {
  const Config& c = m.config;
  const int64_t width = c.q_heads * c.q_head_dim, input = m.input_bytes;
  const int64_t inner = c.q_dim == c.latent_dim ? 0 : c.q_dim * kFloat;
  return frames * (inner + std::max(3 * width * kFloat + width * input, c.q_inter * input) +
                   std::max({c.latent_dim, c.q_dim, width, c.q_inter}) * size_of(m.dtype));
}

// The quantiser's or the dequantiser's: rows of latents, then of frames, or the other way round.
int64_t quantiser_workspace(const Planned& m, int64_t frames) {
  const Config& c = m.config;
  int64_t rows = frames, held = frames * c.latent_dim * kFloat,
          peak = held + q_transformer_workspace(m, frames);
  for (size_t i = 0; i < c.downsample_factor.size(); ++i) {
    rows *= c.downsample_factor[c.downsample_factor.size() - 1 - i];
    if (i + 1 < c.downsample_factor.size()) held += rows * c.latent_dim * kFloat;
    peak = std::max(peak, held + conv_next_workspace(m, rows));
  }
  return peak;
}

// A residual unit in 16 bits: its input after the snake, and what stands between its convolutions; and where
// each row's history lies.
int64_t unit_workspace(const Planned& m, int64_t rows, int64_t channels) {
  return rows * (2 * channels * size_of(m.dtype) + kFloat);
}

}  // namespace

int64_t Codec::stream_bytes() const { return decoder_->layout().bytes_per_slot(dtype_); }

int64_t Codec::pass_bytes(int64_t streams) const {
  return DecodeMemory::bytes_of(decoder_->sizes(static_cast<int>(streams)));
}

int64_t Codec::decode_workspace_bytes(int threads) const {
  const Planned m(config_, dtype_, device_);
  const int64_t frames = Decoder::frames_per_pass(device_), latents = frames * config_.latents_per_frame();
  // The rows of every block stand while those after it work on them.
  int64_t rows = latents, channels = config_.decoder_dim, held = 0, peak = 0;
  for (const int64_t stride : config_.decoder_rates) {
    channels /= 2;
    rows = rows_in_work(m, rows, 3 * stride * channels * kFloat, threads) * stride;
    held += rows * channels * kFloat;
    peak = std::max(peak, held + unit_workspace(m, rows, channels));
  }
  return latents * (config_.latent_dim + config_.decoder_dim) * kFloat +
         std::max(peak, quantiser_workspace(m, frames));
}

int64_t Codec::encode_workspace_bytes(int64_t clips, int threads) const {
  if (!encoder_) return 0;
  const Planned m(config_, dtype_, device_);
  const int64_t frames = Encoder::kFramesPerPass, latents = frames * config_.latents_per_frame();
  int64_t rows = latents, channels = config_.encoder_dim << config_.encoder_rates.size();
  int64_t held = 0, peak = 0;
  for (size_t i = config_.encoder_rates.size(); i-- > 0;) {
    const int64_t stride = config_.encoder_rates[i];
    channels /= 2;
    rows = rows_in_work(m, rows, 3 * stride * channels * kFloat, threads) * stride;
    held += rows * channels * kFloat;
    peak = std::max(peak, held + unit_workspace(m, rows, channels));
  }
  return frames * config_.samples_per_frame() * kFloat +
         latents * ((config_.encoder_dim << config_.encoder_rates.size()) + config_.latent_dim) * kFloat +
         std::max(peak, quantiser_workspace(m, frames)) + clips * encoder_->layout().bytes_per_slot(dtype_);
}

}  // namespace shoal::dac
