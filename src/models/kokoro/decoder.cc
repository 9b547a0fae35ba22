#include "models/kokoro/decoder.h"

#include <algorithm>
#include <array>
#include <string>

#include "ops/linear.h"
#include "ops/segment_norm.h"

namespace shoal::kokoro {
namespace {

constexpr int64_t kBlocks = 4;

// Three taps with stride 2; as a strided convolution they need a fourth tap, of zeros.
ops::PackedMatrix load_halving(Loader& loader, const std::string& prefix) {
  const Tensor taps = loader.convolution(prefix, {1, 1, 3});
  const Tensor bias = loader.host_f32(prefix + ".bias", {1});
  std::array<float, 4> padded = {};
  if (!loader.names_only()) std::copy_n(taps.as<float>(), 3, padded.begin());
  float* const values = loader.names_only() ? nullptr : padded.data();
  return loader.counted(ops::pack_strided_conv1d(loader.ctx(), TensorView::of(values, DType::f32, {1, 1, 4}),
                                                 bias, 2, DType::f32));
}

}  // namespace

Decoder::Decoder(Loader& loader, StyleTable& styles, const Config& config)
    : hidden_(config.hidden_dim), width_(config.decoder_width), asr_width_(config.decoder_asr_width) {
  f0_conv_ = load_halving(loader, "decoder.F0_conv");
  energy_conv_ = load_halving(loader, "decoder.N_conv");
  asr_res_ = load_conv(loader, "decoder.asr_res.0", {asr_width_, hidden_, 1}, true);
  encode_.emplace_back(loader, styles, StyledBlock::Spec{"decoder.encode", hidden_ + 2, width_});
  for (int64_t i = 0; i < kBlocks; ++i) {
    const bool last = i + 1 == kBlocks;
    blocks_.emplace_back(loader, styles,
                         StyledBlock::Spec{.prefix = "decoder.decode." + std::to_string(i),
                                           .in = width_ + asr_width_ + 2,
                                           .out = last ? config.upsample_initial_channel : width_,
                                           .upsample = last});
  }
}

void Decoder::forward(const Rows& rows, TensorView affines, TensorView asr, TensorView f0, TensorView energy,
                      TensorView y) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  // Every block reads the output of the previous one, plus the same text, pitch and energy.
  const int64_t inputs = width_ + asr_width_ + 2;
  std::array<TensorView, 2> joined = {rows.alloc(inputs), rows.alloc(inputs)};
  const TensorView company = joined[0].columns(width_, inputs);
  ops::linear(ctx, asr, asr_res_, company.columns(0, asr_width_));
  const TensorView curves = company.columns(asr_width_, asr_width_ + 2);
  strided_conv1d(rows, f0, f0_conv_, 2, 1, curves.columns(0, 1));
  strided_conv1d(rows, energy, energy_conv_, 2, 1, curves.columns(1, 2));
  ops::segment_sum(ctx, std::array{company}, rows.segments, 1, 1, joined[1].columns(width_, inputs));
  rows.tell("dec_f0", curves.columns(0, 1));
  rows.tell("dec_n", curves.columns(1, 2));
  rows.tell("dec_asr_res", company.columns(0, asr_width_));
  {
    const Workspace::Scope first(*ctx.workspace);
    const TensorView input = rows.alloc(hidden_ + 2);
    ops::segment_sum(ctx, std::array{asr}, rows.segments, 1, 1, input.columns(0, hidden_));
    ops::segment_sum(ctx, std::array{curves}, rows.segments, 1, 1, input.columns(hidden_, hidden_ + 2));
    encode_[0].forward(rows, affines, input, joined[0].columns(0, width_));
    rows.tell("dec_encode", joined[0].columns(0, width_));
  }
  for (size_t i = 0; i + 1 < blocks_.size(); ++i) {
    const TensorView next = joined[(i + 1) % 2].columns(0, width_);
    blocks_[i].forward(rows, affines, joined[i % 2], next);
    rows.tell("dec_blk" + std::to_string(i), next);
  }
  const size_t last = blocks_.size() - 1;
  blocks_[last].forward(rows, affines, joined[last % 2], y);
  rows.at(rows.segments.rate * 2).tell("dec_blk" + std::to_string(last), y);
}

}  // namespace shoal::kokoro
