#include "models/kokoro/generator.h"

#include <array>
#include <string>

#include "ops/linear.h"
#include "ops/segment_norm.h"

namespace shoal::kokoro {
namespace {

constexpr float kStageSlope = 0.1f, kLastSlope = 0.01f;

}  // namespace

Generator::Generator(Loader& loader, StyleTable& styles, const Config& config)
    : stft_{.points = config.gen_istft_n_fft, .hop = config.gen_istft_hop_size} {
  const std::string prefix = "decoder.generator.";
  for (const int64_t rate : config.upsample_rates) spectrum_rate_ *= rate;
  source_weight_ = loader.f32(prefix + "m_source.l_linear.weight", {1, ops::kHarmonics});
  source_bias_ = loader.f32(prefix + "m_source.l_linear.bias", {1});
  for (size_t i = 0; i < config.upsample_rates.size(); ++i)
    stages_.push_back(load_stage(loader, styles, config, i));
  post_ = load_conv(loader, prefix + "conv_post", {2 * stft_.bins(), stages_.back().channels, 7}, true);
}

Generator::Stage Generator::load_stage(Loader& loader, StyleTable& styles, const Config& config,
                                       size_t index) const {
  const std::string prefix = "decoder.generator.", n = std::to_string(index);
  const int64_t in = config.upsample_initial_channel >> index;
  const int64_t kernel = config.upsample_kernel_sizes[index];
  Stage stage{.rate = config.upsample_rates[index],
              .padding = (kernel - config.upsample_rates[index]) / 2,
              .channels = in / 2};
  const bool last = index + 1 == config.upsample_rates.size();
  // The mean of the blocks of the stage before and its leaky ReLU are one factor apart (run()).
  stage.up = loader.counted(ops::pack_transposed_conv1d(
      loader.ctx(), loader.convolution(prefix + "ups." + n, {in, stage.channels, kernel}),
      loader.host_f32(prefix + "ups." + n + ".bias", {stage.channels}), stage.rate, loader.dtype()));
  for (size_t i = index + 1; i < config.upsample_rates.size(); ++i)
    stage.noise_stride *= config.upsample_rates[i];
  stage.noise_padding = last ? 0 : (stage.noise_stride + 1) / 2;
  const Shape noise_shape = {stage.channels, 2 * stft_.bins(), last ? 1 : 2 * stage.noise_stride};
  const Tensor noise_weight = loader.host_f32(prefix + "noise_convs." + n + ".weight", noise_shape);
  const Tensor noise_bias = loader.host_f32(prefix + "noise_convs." + n + ".bias", {stage.channels});
  stage.noise_conv =
      loader.counted(last ? ops::pack_conv1d(loader.ctx(), noise_weight, noise_bias, loader.dtype())
                          : ops::pack_strided_conv1d(loader.ctx(), noise_weight, noise_bias,
                                                     stage.noise_stride, loader.dtype()));
  stage.noise_block.emplace_back(loader, styles, prefix + "noise_res." + n, stage.channels, last ? 11 : 7,
                                 std::vector<int64_t>{1, 3, 5});
  const size_t kernels = config.resblock_kernel_sizes.size();
  for (size_t k = 0; k < kernels; ++k) {
    stage.blocks.emplace_back(loader, styles, prefix + "resblocks." + std::to_string(index * kernels + k),
                              stage.channels, config.resblock_kernel_sizes[k],
                              config.resblock_dilation_sizes[k]);
  }
  return stage;
}

TensorView Generator::excite(const Rows& rows, TensorView f0, const ops::SourceNoise& noise) const {
  ops::Context& ctx = *rows.ctx;
  const Rows spectrum = rows.at(rows.segments.rate * spectrum_rate_, 1);
  const TensorView harmonics = spectrum.alloc(2 * stft_.bins());
  const Workspace::Scope scope(*ctx.workspace);
  const ops::HarmonicSource source{.weights = source_weight_.view().reshape({ops::kHarmonics}),
                                   .bias = source_bias_,
                                   .samples_per_row = samples_per_row()};
  const TensorView wave = ctx.workspace->alloc(DType::f32, {rows.count() * samples_per_row()});
  ops::harmonic_source(ctx, source, f0.reshape({rows.count()}), rows.segments, noise, wave);
  rows.at(rows.segments.rate * samples_per_row()).tell("har_source", wave.reshape({wave.dim(0), 1}));
  ops::short_stft(ctx, stft_, wave, spectrum.segments, harmonics);
  spectrum.tell("har", harmonics);
  return harmonics;
}

// The source at the rate of a stage.   rows: those of the stage's output; y: f32 [rows, channels]
void Generator::noise(const Rows& rows, size_t index, TensorView affines, TensorView harmonics,
                      TensorView y) const {
  const Stage& stage = stages_[index];
  const Workspace::Scope scope(*rows.ctx->workspace);
  const TensorView source = rows.alloc(stage.channels);
  if (stage.noise_stride == 1)
    ops::linear(*rows.ctx, harmonics, stage.noise_conv, source);
  else
    strided_conv1d(rows, harmonics, stage.noise_conv, stage.noise_stride, stage.noise_padding, source);
  rows.tell("gen_noiseconv" + std::to_string(index), source);
  stage.noise_block[0].forward(rows, affines, source, y);
  rows.tell("gen_noiseres" + std::to_string(index), y);
}

// leaky_relu(factor * x), in order, as `next` reads it: x itself, or beside it.
TensorView Generator::activated(const Rows& rows, TensorView x, float factor, float slope,
                                const ops::PackedMatrix& next) {
  const bool in_place = ops::product_input(*rows.ctx, next) == x.dtype();
  const TensorView y = in_place ? x : rows.alloc_input(next);
  ops::segment_sum(*rows.ctx, std::array{x}, rows.segments, factor, slope, y);
  return y;
}

// rows: those of x, which is in order.   -> [rows * rate, channels], the sum of the stage's blocks.
TensorView Generator::run(const Rows& rows, size_t index, TensorView affines, TensorView x,
                          TensorView harmonics) const {
  ops::Context& ctx = *rows.ctx;
  const Stage& stage = stages_[index];
  const bool last = index + 1 == stages_.size();
  const Rows out = rows.at(rows.segments.rate * stage.rate, last ? 1 : 0);
  const TensorView sum = out.alloc(stage.channels);
  const Workspace::Scope scope(*ctx.workspace);
  TensorView up;
  if (last) {
    // One row more than the rates give: the first is a mirror image (MODEL.md, Samples 9).
    up = transposed_conv1d(rows, x, stage.up, stage.rate, stage.padding - 1);
    ops::mirror_first_rows(ctx, out.segments, up);
  } else {
    up = transposed_conv1d(rows, x, stage.up, stage.rate, stage.padding);
  }
  out.tell("gen_ups" + std::to_string(index), up);
  noise(out, index, affines, harmonics, sum);
  ops::segment_sum(ctx, std::array{up, sum}, out.segments, 1, 1, up);
  for (size_t k = 0; k < stage.blocks.size(); ++k) {
    const Workspace::Scope block(*ctx.workspace);
    const TensorView branch = k == 0 ? sum : out.alloc(stage.channels);
    stage.blocks[k].forward(out, affines, up, branch);
    out.tell("gen_res" + std::to_string(index) + "_" + std::to_string(k), branch);
    if (k > 0) ops::segment_sum(ctx, std::array{sum, branch}, out.segments, 1, 1, sum);
  }
  return sum;
}

void Generator::forward(const Rows& rows, TensorView affines, TensorView x, TensorView harmonics,
                        TensorView samples) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  Rows at = rows;
  float mean = 1;  // of the blocks of the stage before
  for (size_t i = 0; i < stages_.size(); ++i) {
    x = run(at, i, affines, activated(at, x, mean, kStageSlope, stages_[i].up), harmonics);
    at = at.at(at.segments.rate * stages_[i].rate, i + 1 == stages_.size() ? 1 : 0);
    mean = 1 / static_cast<float>(stages_[i].blocks.size());
  }
  x = activated(at, x, mean, kLastSlope, post_);
  const TensorView spectrum = at.alloc(2 * stft_.bins());
  centred_conv1d(at, x, post_, 1, spectrum);
  at.tell("conv_post", spectrum);
  ops::inverse_short_stft(ctx, stft_, spectrum, at.segments, samples);
}

}  // namespace shoal::kokoro
