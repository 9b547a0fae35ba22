#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "models/dac/codec_oracle_testing.h"
#include "ops/attention.h"
#include "weights/convert.h"

namespace shoal::dac {

std::vector<double> CodecOracle::weight(const std::string& name, const Shape& shape) const {
  const Tensor values = weights::to_f32(source_.tensor(name, shape), nullptr);
  return {values.as<float>(), values.as<float>() + values.elements()};
}

std::vector<double> CodecOracle::kernel(const std::string& prefix, const Shape& shape) const {
  const weights::Weight found = source_.convolution(prefix, shape);
  return {found.view.as<float>(), found.view.as<float>() + found.view.elements()};
}

OracleMap CodecOracle::conv(const OracleMap& x, const std::string& prefix, int64_t out, int64_t k,
                            int64_t stride, int64_t dilation) const {
  const auto w = kernel(prefix, {out, x.channels, k}), b = weight(prefix + ".bias", {out});
  const int64_t pad = (k - 1) * dilation + 1 - stride;
  OracleMap y(out, x.rows / stride);
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t t = 0; t < y.rows; ++t) {
      double sum = b[static_cast<size_t>(o)];
      for (int64_t c = 0; c < x.channels; ++c) {
        for (int64_t j = 0; j < k; ++j) {
          const int64_t from = t * stride + j * dilation - pad;
          if (from >= 0) sum += w[static_cast<size_t>((o * x.channels + c) * k + j)] * x.at(c, from);
        }
      }
      y.at(o, t) = sum;
    }
  }
  return y;
}

OracleMap CodecOracle::transposed(const OracleMap& x, const std::string& prefix, int64_t out, int64_t k,
                                  int64_t stride) const {
  const auto w = kernel(prefix, {x.channels, out, k}), b = weight(prefix + ".bias", {out});
  OracleMap y(out, x.rows * stride);
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t t = 0; t < y.rows; ++t) y.at(o, t) = b[static_cast<size_t>(o)];
    for (int64_t c = 0; c < x.channels; ++c) {
      for (int64_t t = 0; t < x.rows; ++t) {
        for (int64_t j = 0; j < k && t * stride + j < y.rows; ++j)
          y.at(o, t * stride + j) += w[static_cast<size_t>((c * out + o) * k + j)] * x.at(c, t);
      }
    }
  }
  return y;
}

OracleMap CodecOracle::snake(OracleMap x, const std::string& name) const {
  const auto alpha = weight(name, {1, x.channels, 1});
  for (int64_t c = 0; c < x.channels; ++c) {
    const double a = alpha[static_cast<size_t>(c)];
    for (int64_t t = 0; t < x.rows; ++t) x.at(c, t) += std::pow(std::sin(a * x.at(c, t)), 2) / (a + 1e-9);
  }
  return x;
}

OracleMap CodecOracle::residual_unit(const OracleMap& x, const std::string& prefix, int64_t dilation) const {
  const OracleMap h =
      conv(snake(x, prefix + ".block.0.alpha"), prefix + ".block.1.conv", x.channels, 7, 1, dilation);
  OracleMap y = conv(snake(h, prefix + ".block.2.alpha"), prefix + ".block.3.conv", x.channels, 1, 1, 1);
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += x.values[i];
  return y;
}

OracleMap CodecOracle::linear(const OracleMap& x, const std::string& prefix, int64_t out, bool bias) const {
  const auto w = weight(prefix + ".weight", {out, x.channels});
  const auto b = bias ? weight(prefix + ".bias", {out}) : std::vector<double>(static_cast<size_t>(out));
  OracleMap y(out, x.rows);
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t t = 0; t < x.rows; ++t) {
      double sum = b[static_cast<size_t>(o)];
      for (int64_t c = 0; c < x.channels; ++c) sum += w[static_cast<size_t>(o * x.channels + c)] * x.at(c, t);
      y.at(o, t) = sum;
    }
  }
  return y;
}

void CodecOracle::add_scaled(OracleMap& x, const OracleMap& y, const std::string& gamma) const {
  const auto scale = weight(gamma, {x.channels});
  for (int64_t c = 0; c < x.channels; ++c) {
    for (int64_t t = 0; t < x.rows; ++t) x.at(c, t) += scale[static_cast<size_t>(c)] * y.at(c, t);
  }
}

OracleMap CodecOracle::conv_next(const OracleMap& x, const std::string& prefix) const {
  const auto w = weight(prefix + ".dwconv.conv.weight", {x.channels, 1, 7});
  const auto b = weight(prefix + ".dwconv.conv.bias", {x.channels});
  const auto scale = weight(prefix + ".norm.weight", {x.channels}),
             shift = weight(prefix + ".norm.bias", {x.channels});
  OracleMap h(x.channels, x.rows);
  for (int64_t t = 0; t < x.rows; ++t) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < x.channels; ++c) {
      h.at(c, t) = b[static_cast<size_t>(c)];
      for (int64_t j = 0; j < 7; ++j)
        h.at(c, t) += t + j >= 6 ? w[static_cast<size_t>(c * 7 + j)] * x.at(c, t + j - 6) : 0;
      mean += h.at(c, t) / static_cast<double>(x.channels);
    }
    for (int64_t c = 0; c < x.channels; ++c)
      variance += std::pow(h.at(c, t) - mean, 2) / static_cast<double>(x.channels);
    for (int64_t c = 0; c < x.channels; ++c)
      h.at(c, t) = (h.at(c, t) - mean) / std::sqrt(variance + 1e-6) * scale[static_cast<size_t>(c)] +
                   shift[static_cast<size_t>(c)];
  }
  OracleMap wide = linear(h, prefix + ".pwconv1", 4 * x.channels, true);
  for (double& v : wide.values) v = 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
  OracleMap y = x;
  add_scaled(y, linear(wide, prefix + ".pwconv2", x.channels, true), prefix + ".gamma");
  return y;
}

OracleMap CodecOracle::rms_norm(OracleMap x, const std::string& name) const {
  const auto scale = weight(name, {x.channels});
  for (int64_t t = 0; t < x.rows; ++t) {
    double square = 0;
    for (int64_t c = 0; c < x.channels; ++c)
      square += x.at(c, t) * x.at(c, t) / static_cast<double>(x.channels);
    for (int64_t c = 0; c < x.channels; ++c)
      x.at(c, t) *= scale[static_cast<size_t>(c)] / std::sqrt(square + double{config_.norm_eps});
  }
  return x;
}

OracleMap CodecOracle::attention(const OracleMap& x, const std::string& prefix, const Heads& heads) const {
  const int64_t width = heads.count * heads.dim;
  OracleMap qkv = linear(x, prefix + ".wqkv", 3 * width, false);
  const Tensor table = ops::make_rope_table(x.rows, heads.dim, config_.rope_base);
  for (int64_t c = 0; c < 2 * width; c += 2) {
    for (int64_t t = 0; t < x.rows; ++t) {
      const float* turn = table.as<float>() + (t * heads.dim / 2 + c % heads.dim / 2) * 2;
      const double a = qkv.at(c, t), b = qkv.at(c + 1, t);
      qkv.at(c, t) = a * turn[0] - b * turn[1];
      qkv.at(c + 1, t) = b * turn[0] + a * turn[1];
    }
  }
  OracleMap y(width, x.rows);
  for (int64_t head = 0; head < heads.count; ++head) {
    const int64_t q = head * heads.dim, k = width + q, v = width + k;
    for (int64_t t = 0; t < x.rows; ++t) {
      double total = 0;
      for (int64_t s = std::max<int64_t>(0, t - heads.window + 1); s <= t; ++s) {
        double score = 0;
        for (int64_t d = 0; d < heads.dim; ++d) score += qkv.at(q + d, t) * qkv.at(k + d, s);
        const double share = std::exp(score / std::sqrt(static_cast<double>(heads.dim)));
        total += share;
        for (int64_t d = 0; d < heads.dim; ++d) y.at(q + d, t) += share * qkv.at(v + d, s);
      }
      for (int64_t d = 0; d < heads.dim; ++d) y.at(q + d, t) /= total;
    }
  }
  return linear(y, prefix + ".wo", x.channels, false);
}

OracleMap CodecOracle::transformer(OracleMap x, const std::string& prefix, const Heads& heads) const {
  const int64_t channels = x.channels;
  if (heads.width != channels) x = linear(x, prefix + ".input_proj", heads.width, true);
  for (int64_t i = 0; i < heads.layers; ++i) {
    const std::string layer = concat(prefix, ".layers.", i);
    add_scaled(x, attention(rms_norm(x, layer + ".attention_norm.weight"), layer + ".attention", heads),
               layer + ".attention_layer_scale.gamma");
    const OracleMap u = rms_norm(x, layer + ".ffn_norm.weight");
    OracleMap gate = linear(u, layer + ".feed_forward.w1", heads.hidden, false);
    const OracleMap up = linear(u, layer + ".feed_forward.w3", heads.hidden, false);
    for (size_t j = 0; j < gate.values.size(); ++j)
      gate.values[j] *= up.values[j] / (1 + std::exp(-gate.values[j]));
    add_scaled(x, linear(gate, layer + ".feed_forward.w2", x.channels, false),
               layer + ".ffn_layer_scale.gamma");
  }
  x = rms_norm(std::move(x), prefix + ".norm.weight");
  return heads.width != channels ? linear(x, prefix + ".output_proj", channels, true) : x;
}

namespace {

std::string codebook(int64_t i) {
  return i == 0 ? "quantizer.semantic_quantizer.quantizers.0"
                : concat("quantizer.quantizer.quantizers.", i - 1);
}

}  // namespace

std::vector<double> CodecOracle::decode(const std::vector<int32_t>& codes) const {
  const Config& c = config_;
  const int64_t books = c.num_codebooks(), frames = static_cast<int64_t>(codes.size()) / books;
  OracleMap x(c.latent_dim, frames);
  for (int64_t i = 0; i < books; ++i) {
    const int64_t entries = i == 0 ? c.semantic_codebook_size : c.codebook_size;
    const auto table = weight(codebook(i) + ".codebook.weight", {entries, c.codebook_dim});
    OracleMap q(c.codebook_dim, frames);
    for (int64_t t = 0; t < frames; ++t) {
      const int64_t code = std::min<int64_t>(codes[static_cast<size_t>(t * books + i)], entries - 1);
      for (int64_t d = 0; d < c.codebook_dim; ++d)
        q.at(d, t) = table[static_cast<size_t>(code * c.codebook_dim + d)];
    }
    const OracleMap z = conv(q, codebook(i) + ".out_proj", c.latent_dim, 1, 1, 1);
    for (size_t j = 0; j < x.values.size(); ++j) x.values[j] += z.values[j];
  }
  x = transformer(std::move(x), "quantizer.post_module",
                  {c.q_layers, c.q_dim, c.q_heads, c.q_head_dim, c.q_inter, c.q_window});
  for (size_t i = 0; i < c.downsample_factor.size(); ++i) {
    const int64_t factor = c.downsample_factor[c.downsample_factor.size() - 1 - i];
    x = transposed(x, concat("quantizer.upsample.", i, ".0.conv"), c.latent_dim, factor, factor);
    x = conv_next(x, concat("quantizer.upsample.", i, ".1"));
  }
  x = conv(x, "decoder.model.0.conv", c.decoder_dim, 7, 1, 1);
  size_t n = 1;
  for (const int64_t stride : c.decoder_rates) {
    const std::string prefix = concat("decoder.model.", n, ".block.");
    x = transposed(snake(x, prefix + "0.alpha"), prefix + "1.conv", c.decoder_dim >> n, 2 * stride, stride);
    x = residual_unit(x, prefix + "2", 1);
    x = residual_unit(x, prefix + "3", 3);
    x = residual_unit(x, prefix + "4", 9);
    ++n;
  }
  x = conv(snake(x, concat("decoder.model.", n, ".alpha")), concat("decoder.model.", n + 1, ".conv"), 1, 7, 1,
           1);
  for (double& v : x.values) v = std::tanh(v);
  return x.values;
}

CodecOracle::Codes CodecOracle::encode(const std::vector<float>& samples) const {
  const Config& c = config_;
  const int64_t hop = c.samples_per_frame();
  OracleMap x(1, (static_cast<int64_t>(samples.size()) + hop - 1) / hop * hop);
  std::copy(samples.begin(), samples.end(), x.values.begin());
  x = conv(x, "encoder.block.0.conv", c.encoder_dim, 7, 1, 1);
  size_t n = 1;
  for (const int64_t stride : c.encoder_rates) {
    const std::string prefix = concat("encoder.block.", n, ".block.");
    x = residual_unit(x, prefix + "0", 1);
    x = residual_unit(x, prefix + "1", 3);
    x = residual_unit(x, prefix + "2", 9);
    x = conv(snake(x, prefix + "3.alpha"), prefix + "4.conv", 2 * x.channels, 2 * stride, stride, 1);
    if (const int64_t layers = c.encoder_transformer_layers[n - 1]; layers > 0)
      x = transformer(x, prefix + "5",
                      {layers, x.channels, x.channels / 64, c.head_dim, 3 * x.channels, c.enc_window});
    ++n;
  }
  x = conv(snake(x, concat("encoder.block.", n, ".alpha")), concat("encoder.block.", n + 1, ".conv"),
           c.latent_dim, 3, 1, 1);
  for (size_t i = 0; i < c.downsample_factor.size(); ++i) {
    const int64_t factor = c.downsample_factor[i];
    x = conv(x, concat("quantizer.downsample.", i, ".0.conv"), c.latent_dim, factor, factor, 1);
    x = conv_next(x, concat("quantizer.downsample.", i, ".1"));
  }
  x = transformer(std::move(x), "quantizer.pre_module",
                  {c.q_layers, c.q_dim, c.q_heads, c.q_head_dim, c.q_inter, c.q_window});

  const int64_t books = c.num_codebooks(), dim = c.codebook_dim;
  Codes out{std::vector<int32_t>(static_cast<size_t>(x.rows * books)),
            std::vector<double>(static_cast<size_t>(x.rows * books))};
  for (int64_t i = 0; i < books; ++i) {
    const int64_t entries = i == 0 ? c.semantic_codebook_size : c.codebook_size;
    const auto table = weight(codebook(i) + ".codebook.weight", {entries, dim});
    const OracleMap e = conv(x, codebook(i) + ".in_proj", dim, 1, 1, 1);
    OracleMap q(dim, x.rows);
    for (int64_t t = 0; t < x.rows; ++t) {
      double best = std::numeric_limits<double>::infinity(), second = best, length = 0;
      int64_t code = 0;
      for (int64_t d = 0; d < dim; ++d) length += e.at(d, t) * e.at(d, t);
      for (int64_t entry = 0; entry < entries; ++entry) {
        double entry_length = 0, distance = 0;
        for (int64_t d = 0; d < dim; ++d)
          entry_length += std::pow(table[static_cast<size_t>(entry * dim + d)], 2);
        for (int64_t d = 0; d < dim; ++d)
          distance += std::pow(e.at(d, t) / std::sqrt(length) -
                                   table[static_cast<size_t>(entry * dim + d)] / std::sqrt(entry_length),
                               2);
        if (distance < best) {
          second = best;
          best = distance;
          code = entry;
        } else {
          second = std::min(second, distance);
        }
      }
      out.codes[static_cast<size_t>(t * books + i)] = static_cast<int32_t>(code);
      out.margin[static_cast<size_t>(t * books + i)] = second - best;
      for (int64_t d = 0; d < dim; ++d) q.at(d, t) = table[static_cast<size_t>(code * dim + d)];
    }
    const OracleMap z = conv(q, codebook(i) + ".out_proj", c.latent_dim, 1, 1, 1);
    for (size_t j = 0; j < x.values.size(); ++j) x.values[j] -= z.values[j];
  }
  return out;
}

}  // namespace shoal::dac
