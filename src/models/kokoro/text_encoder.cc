#include "models/kokoro/text_encoder.h"

#include <array>
#include <string>

#include "models/kokoro/layers.h"
#include "ops/embedding.h"
#include "ops/norm.h"
#include "ops/segment_norm.h"

namespace shoal::kokoro {
namespace {

ops::LstmDirection views_of(const std::array<Tensor, 4>& parts) {
  return {.weight_ih = parts[0], .weight_hh = parts[1], .bias_ih = parts[2], .bias_hh = parts[3]};
}

std::array<Tensor, 4> load_direction(Loader& loader, const std::string& prefix, const std::string& suffix,
                                     int64_t inputs, int64_t hidden) {
  return {loader.host_f32(prefix + ".weight_ih_l0" + suffix, {4 * hidden, inputs}),
          loader.host_f32(prefix + ".weight_hh_l0" + suffix, {4 * hidden, hidden}),
          loader.host_f32(prefix + ".bias_ih_l0" + suffix, {4 * hidden}),
          loader.host_f32(prefix + ".bias_hh_l0" + suffix, {4 * hidden})};
}

}  // namespace

ops::PackedLstm load_lstm(Loader& loader, const std::string& prefix, int64_t inputs, int64_t hidden) {
  const auto forward = load_direction(loader, prefix, "", inputs, hidden);
  const auto backward = load_direction(loader, prefix, "_reverse", inputs, hidden);
  return loader.counted(ops::pack_lstm(loader.ctx(), views_of(forward), views_of(backward), loader.dtype()));
}

TextEncoder::TextEncoder(Loader& loader, const Config& config) : width_(config.hidden_dim) {
  const std::string prefix = "text_encoder";
  embedding_ = loader.f32(prefix + ".embedding.weight", {config.n_token, width_});
  for (int64_t i = 0; i < config.n_layer; ++i) {
    const std::string layer = prefix + ".cnn." + std::to_string(i);
    layers_.push_back(
        {.conv = load_conv(loader, layer + ".0", {width_, width_, config.text_encoder_kernel_size}, true),
         .gamma = loader.f32(layer + ".1.gamma", {width_}),
         .beta = loader.f32(layer + ".1.beta", {width_})});
  }
  lstm_ = load_lstm(loader, prefix + ".lstm", width_, width_ / 2);
}

void TextEncoder::forward(const Rows& rows, TensorView ids, TensorView y) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView x = rows.alloc(width_), between = rows.alloc(width_);
  ops::gather_rows(ctx, embedding_, ids, between);
  ops::segment_sum(ctx, std::array{between}, rows.segments, 1, 1, x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    centred_conv1d(rows, x, layers_[i].conv, 1, between);
    ops::layer_norm(ctx, between, layers_[i].gamma, layers_[i].beta, kNormEps, between);
    ops::segment_sum(ctx, std::array{between}, rows.segments, 1, kSlope, x);
    rows.tell("txt_cnn" + std::to_string(i), x);
  }
  ops::bidirectional_lstm(ctx, x, rows.segments, lstm_, y);
  rows.tell("t_en", y);
}

}  // namespace shoal::kokoro
