// The codec's share of ModelSizes, layer by layer as models/dac binds and runs it.
#include <algorithm>

#include "models/dac/decoder.h"
#include "models/dac/encoder.h"
#include "models/dac/state.h"
#include "models/dac/window_transformer.h"
#include "runtime/families/language/model_sizes.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// Bytes of the codec's weights.
struct CodecWeights {
  int64_t element;

  int64_t linear(int64_t outputs, int64_t depth, bool bias) const {
    return outputs * depth * element + (bias ? outputs * kFloatBytes : 0);
  }
  // stride: of a transposed one, whose bias is repeated.
  int64_t conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) const {
    return in * out * kernel * element + stride * out * kFloatBytes;
  }
  static int64_t f32_conv(int64_t in, int64_t out, int64_t kernel) {
    return (in * out * kernel + out) * kFloatBytes;
  }
  int64_t residual_unit(int64_t channels) const {
    return conv(channels, channels, 7) + conv(channels, channels, 1) + 2 * channels * kFloatBytes;
  }
  int64_t conv_next(int64_t channels) const {
    return linear(4 * channels, channels, true) + linear(channels, 4 * channels, true) +
           (7 + 4) * channels * kFloatBytes;
  }
  int64_t transformer(int64_t layers, int64_t dim, int64_t width, int64_t hidden) const {
    return layers * (linear(3 * width, dim, false) + linear(dim, width, false) +
                     3 * linear(hidden, dim, false) + 4 * dim * kFloatBytes) +
           dim * kFloatBytes;
  }
  int64_t q_transformer(const dac::Config& c) const {
    const int64_t layers = transformer(c.q_layers, c.q_dim, c.q_heads * c.q_head_dim, c.q_inter);
    return c.q_dim == c.latent_dim
               ? layers
               : layers + linear(c.q_dim, c.latent_dim, true) + linear(c.latent_dim, c.q_dim, true);
  }

  int64_t dequantiser(const dac::Config& c) const {
    int64_t bytes = c.total_codes() * c.latent_dim * element + q_transformer(c);
    for (const int64_t factor : c.downsample_factor)
      bytes += conv(c.latent_dim, c.latent_dim, factor, factor) + conv_next(c.latent_dim);
    return bytes;
  }
  int64_t decoder(const dac::Config& c) const {
    int64_t bytes = conv(c.latent_dim, c.decoder_dim, 7), channels = c.decoder_dim;
    for (const int64_t stride : c.decoder_rates) {
      bytes += conv(channels, channels / 2, 2 * stride, stride) + channels * kFloatBytes +
               3 * residual_unit(channels / 2);
      channels /= 2;
    }
    return bytes + f32_conv(channels, 1, 7) + channels * kFloatBytes;
  }
  int64_t quantiser(const dac::Config& c) const {
    int64_t bytes = q_transformer(c);
    for (const int64_t factor : c.downsample_factor)
      bytes += conv(c.latent_dim, c.latent_dim, factor) + conv_next(c.latent_dim);
    return bytes +
           c.num_codebooks() *
               (f32_conv(c.latent_dim, c.codebook_dim, 1) + f32_conv(c.codebook_dim, c.latent_dim, 1)) +
           2 * c.total_codes() * c.codebook_dim * kFloatBytes;
  }
  int64_t encoder(const dac::Config& c) const {
    int64_t bytes = f32_conv(1, c.encoder_dim, 7), channels = c.encoder_dim;
    for (size_t i = 0; i < c.encoder_rates.size(); ++i) {
      const int64_t stride = c.encoder_rates[i], layers = c.encoder_transformer_layers[i];
      bytes += 3 * residual_unit(channels) + stride * channels * kFloatBytes +
               conv(channels, 2 * channels, 2 * stride);
      channels *= 2;
      if (layers > 0)
        bytes += transformer(layers, channels, dac::Encoder::transformer_heads(channels) * c.head_dim,
                             3 * channels);
    }
    return bytes + conv(channels, c.latent_dim, 3) + channels * kFloatBytes;
  }
};

int64_t bytes_of(const dac::StateLayout& layout, DType dtype) {
  int64_t bytes = std::max<int64_t>(16, layout.history_floats()) * kFloatBytes;
  for (const dac::RingSpec& ring : layout.rings())
    bytes += ring.layers * 2 * ring.pages * ring.heads * dac::kPageSize * ring.head_dim * size_of(dtype);
  return bytes;
}

constexpr int64_t kDilations[] = {1, 3, 9};

void add_units(dac::StateLayout& layout, int64_t channels) {
  for (const int64_t dilation : kDilations) layout.add_history(6 * dilation, channels);
}

void add_q_transformer(dac::StateLayout& layout, const dac::Config& c, int64_t frames) {
  layout.add_ring(c.q_layers, c.q_heads, c.q_head_dim, c.q_window, frames);
}

dac::StateLayout decoder_layout(const ModelSizes& m) {
  const dac::Config& c = m.codec;
  dac::StateLayout layout;
  add_q_transformer(layout, c, dac::Decoder::frames_per_pass(m.device));
  for (size_t i = 0; i < c.downsample_factor.size(); ++i) layout.add_history(6, c.latent_dim);
  layout.add_history(6, c.latent_dim);
  int64_t channels = c.decoder_dim;
  for (size_t i = 0; i < c.decoder_rates.size(); ++i) {
    layout.add_history(1, channels);
    add_units(layout, channels /= 2);
  }
  layout.add_history(6, channels);
  return layout;
}

dac::StateLayout encoder_layout(const ModelSizes& m) {
  const dac::Config& c = m.codec;
  dac::StateLayout layout;
  layout.add_history(6, 1);
  int64_t channels = c.encoder_dim;
  for (size_t i = 0; i < c.encoder_rates.size(); ++i) {
    add_units(layout, channels);
    layout.add_history(1, c.encoder_rates[i] * channels);
    channels *= 2;
    if (c.encoder_transformer_layers[i] > 0)
      layout.add_ring(c.encoder_transformer_layers[i], dac::Encoder::transformer_heads(channels), c.head_dim,
                      c.enc_window, dac::Encoder::kTransformerRows);
  }
  layout.add_history(2, channels);
  add_q_transformer(layout, c, dac::Encoder::kFramesPerPass);
  for (size_t i = 0; i < c.downsample_factor.size(); ++i) layout.add_history(6, c.latent_dim);
  return layout;
}

// How many rows of a stage are in work at a time.
int64_t rows_in_work(const ModelSizes& m, int64_t rows, int64_t bytes_per_row, int threads) {
  return std::min(rows, dac::rows_in_cache(m.device, threads, bytes_per_row));
}

// A ConvNeXt block beside its rows.
int64_t conv_next_workspace(const ModelSizes& m, int64_t rows) {
  return rows * m.codec.latent_dim * (5 * kFloatBytes + 4 * size_of(m.dtype));
}

int64_t q_transformer_workspace(const ModelSizes& m, int64_t frames) {
  const dac::Config& c = m.codec;
  const int64_t width = c.q_heads * c.q_head_dim, input = m.input_bytes();
  const int64_t inner = c.q_dim == c.latent_dim ? 0 : c.q_dim * kFloatBytes;
  return frames * (inner + std::max(3 * width * kFloatBytes + width * input, c.q_inter * input) +
                   std::max({c.latent_dim, c.q_dim, width, c.q_inter}) * size_of(m.dtype));
}

// The quantiser's or the dequantiser's: rows of latents, then of frames, or the other way round.
int64_t quantiser_workspace(const ModelSizes& m, int64_t frames) {
  const dac::Config& c = m.codec;
  int64_t rows = frames, held = frames * c.latent_dim * kFloatBytes,
          peak = held + q_transformer_workspace(m, frames);
  for (size_t i = 0; i < c.downsample_factor.size(); ++i) {
    rows *= c.downsample_factor[c.downsample_factor.size() - 1 - i];
    if (i + 1 < c.downsample_factor.size()) held += rows * c.latent_dim * kFloatBytes;
    peak = std::max(peak, held + conv_next_workspace(m, rows));
  }
  return peak;
}

// A residual unit in 16 bits: its input after the snake, and what stands between its convolutions; and where
// each row's history lies.
int64_t unit_workspace(const ModelSizes& m, int64_t rows, int64_t channels) {
  return rows * (2 * channels * size_of(m.dtype) + kFloatBytes);
}

}  // namespace

dac::CodecMemory ModelSizes::codec_bytes() const {
  const CodecWeights weights{size_of(dtype)};
  dac::CodecMemory memory{.quantiser = weights.dequantiser(codec), .decoder = weights.decoder(codec)};
  if (with_encoder) {
    memory.encoder = weights.encoder(codec);
    memory.quantiser += weights.quantiser(codec);
  }
  return memory;
}

int64_t ModelSizes::codec_stream_bytes() const { return bytes_of(decoder_layout(*this), dtype); }

int64_t ModelSizes::codec_pass_bytes(int64_t streams) const {
  const int64_t frames = dac::Decoder::frames_per_pass(device), together = std::min(streams, frames);
  const int64_t ids = 2 * together + 1 + frames * (2 + codec.num_codebooks()) +
                      together * dac::WindowTransformer::table_pages(dac::kMaxPositions);
  return ids * 4 + frames * codec.samples_per_frame() * kFloatBytes;
}

int64_t ModelSizes::codec_workspace_bytes(int threads) const {
  const int64_t frames = dac::Decoder::frames_per_pass(device), latents = frames * codec.latents_per_frame();
  // The rows of every block stand while those after it work on them.
  int64_t rows = latents, channels = codec.decoder_dim, held = 0, peak = 0;
  for (const int64_t stride : codec.decoder_rates) {
    channels /= 2;
    rows = rows_in_work(*this, rows, 3 * stride * channels * kFloatBytes, threads) * stride;
    held += rows * channels * kFloatBytes;
    peak = std::max(peak, held + unit_workspace(*this, rows, channels));
  }
  return latents * (codec.latent_dim + codec.decoder_dim) * kFloatBytes +
         std::max(peak, quantiser_workspace(*this, frames));
}

int64_t ModelSizes::encoder_workspace_bytes(int clips, int threads) const {
  if (!with_encoder) return 0;
  const int64_t frames = dac::Encoder::kFramesPerPass, latents = frames * codec.latents_per_frame();
  int64_t rows = latents, channels = codec.encoder_dim << codec.encoder_rates.size();
  int64_t held = 0, peak = 0;
  for (size_t i = codec.encoder_rates.size(); i-- > 0;) {
    const int64_t stride = codec.encoder_rates[i];
    channels /= 2;
    rows = rows_in_work(*this, rows, 3 * stride * channels * kFloatBytes, threads) * stride;
    held += rows * channels * kFloatBytes;
    peak = std::max(peak, held + unit_workspace(*this, rows, channels));
  }
  return frames * codec.samples_per_frame() * kFloatBytes +
         latents * ((codec.encoder_dim << codec.encoder_rates.size()) + codec.latent_dim) * kFloatBytes +
         std::max(peak, quantiser_workspace(*this, frames)) + clips * bytes_of(encoder_layout(*this), dtype);
}

}  // namespace shoal::runtime
