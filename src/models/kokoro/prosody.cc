#include "models/kokoro/prosody.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "models/kokoro/text_encoder.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/segment_norm.h"

namespace shoal::kokoro {

DurationPredictor::DurationPredictor(Loader& loader, StyleTable& styles, const Config& config)
    : width_(config.hidden_dim) {
  const int64_t inputs = width_ + config.style_dim;
  for (int64_t i = 0; i < config.n_layer; ++i) {
    const std::string prefix = "predictor.text_encoder.lstms.";
    layers_.push_back({.lstm = load_lstm(loader, prefix + std::to_string(2 * i), inputs, width_ / 2),
                       .norm = styles.add(loader, prefix + std::to_string(2 * i + 1) + ".fc", width_, 1)});
  }
  lstm_ = load_lstm(loader, "predictor.lstm", inputs, width_ / 2);
  projection_ = loader.linear("predictor.duration_proj.linear_layer", config.max_dur, width_, true);
}

// LSTMs, each followed by a layer norm whose scales and shifts are the style's.
void DurationPredictor::encode(const Rows& rows, TensorView affines, TensorView utterance_of,
                               TensorView d) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView text = d.columns(0, width_), x = rows.alloc(width_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    ops::bidirectional_lstm(ctx, d, rows.segments, layers_[i].lstm, x);
    rows.tell("durenc_lstm" + std::to_string(2 * i), x);
    const StyleColumns& norm = layers_[i].norm;
    ops::layer_norm_by_row(ctx, x, utterance_of, norm.scales(affines), norm.shifts(affines), kNormEps, text);
    rows.tell("durenc_adaln" + std::to_string(2 * i + 1), text);
  }
}

void DurationPredictor::forward(const Rows& rows, TensorView affines, TensorView styles,
                                TensorView utterance_of, TensorView d, TensorView logits) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  ops::gather_rows(ctx, styles, utterance_of, d.columns(width_, d.dim(1)));
  encode(rows, affines, utterance_of, d);
  rows.tell("d", d);
  const TensorView x = rows.alloc(width_);
  ops::bidirectional_lstm(ctx, d, rows.segments, lstm_, x);
  rows.tell("dur_lstm", x);
  ops::linear(ctx, x, projection_, logits);
  rows.tell("dur_logits", logits);
}

int32_t duration(std::span<const float> logits, float speed) {
  float sum = 0;
  for (const float logit : logits) sum += 1 / (1 + std::exp(-logit));
  return std::max(1, static_cast<int32_t>(std::nearbyint(sum / speed)));
}

PitchPredictor::Stack PitchPredictor::load_stack(Loader& loader, StyleTable& styles, const std::string& name,
                                                 int64_t width) {
  const std::string prefix = "predictor." + name;
  Stack stack;
  stack.blocks.emplace_back(loader, styles, StyledBlock::Spec{prefix + ".0", width, width});
  stack.blocks.emplace_back(loader, styles, StyledBlock::Spec{prefix + ".1", width, width / 2, true});
  stack.blocks.emplace_back(loader, styles, StyledBlock::Spec{prefix + ".2", width / 2, width / 2});
  // Of all convolutions of this part, it alone is stored without weight norm.
  stack.projection = loader.counted(
      ops::pack_conv1d(loader.ctx(), loader.host_f32(prefix + "_proj.weight", {1, width / 2, 1}),
                       loader.host_f32(prefix + "_proj.bias", {1}), loader.dtype()));
  return stack;
}

PitchPredictor::PitchPredictor(Loader& loader, StyleTable& styles, const Config& config)
    : width_(config.hidden_dim) {
  shared_ = load_lstm(loader, "predictor.shared", width_ + config.style_dim, width_ / 2);
  f0_ = load_stack(loader, styles, "F0", width_);
  energy_ = load_stack(loader, styles, "N", width_);
}

void PitchPredictor::run(const Rows& rows, const Stack& stack, const std::string& name, TensorView affines,
                         TensorView x, TensorView y) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  Rows at = rows;
  for (size_t i = 0; i < stack.blocks.size(); ++i) {
    const Rows out = at.at(i == 1 ? at.segments.rate * 2 : at.segments.rate);
    const TensorView next = out.alloc(stack.blocks[i].outputs());
    stack.blocks[i].forward(at, affines, x, next);
    out.tell(name + "_blk" + std::to_string(i), next);
    x = next;
    at = out;
  }
  const TensorView curve = at.alloc(1);
  ops::linear(ctx, x, stack.projection, curve);
  ops::segment_sum(ctx, std::array{curve}, at.segments, 1, 1, y);
}

void PitchPredictor::forward(const Rows& rows, TensorView affines, TensorView x, TensorView f0,
                             TensorView energy) const {
  const Workspace::Scope scope(rows.workspace());
  const TensorView shared = rows.alloc(width_);
  ops::bidirectional_lstm(*rows.ctx, x, rows.segments, shared_, shared);
  rows.tell("shared", shared);
  run(rows, f0_, "f0", affines, shared, f0);
  run(rows, energy_, "n", affines, shared, energy);
  const Rows twice = rows.at(rows.segments.rate * 2);
  twice.tell("F0", f0);
  twice.tell("N", energy);
}

}  // namespace shoal::kokoro
