#include "models/dac/layers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/conv1d.h"
#include "ops/norm.h"

namespace shoal::dac {
namespace {

constexpr int64_t kResidualKernel = 7;
constexpr int64_t kDepthwiseKernel = 7;
constexpr float kLayerNormEps = 1e-6f;  // of the ConvNeXt blocks (MODEL.md, Blocks)

// The alpha of a snake over rows that hold `times` rows of the original, side by side.
Tensor tiled(TensorView alpha, int64_t times) {
  const int64_t channels = alpha.elements();
  Tensor out(DType::f32, {times * channels});
  for (int64_t i = 0; i < times * channels; ++i) out.as<float>()[i] = alpha.as<float>()[i % channels];
  return out;
}

// [channels, 1, taps] -> [taps, channels]
Tensor transposed(TensorView kernel) {
  const int64_t channels = kernel.dim(0), taps = kernel.dim(2);
  Tensor out(DType::f32, {taps, channels});
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap)
      out.as<float>()[tap * channels + c] = kernel.as<float>()[c * taps + tap];
  }
  return out;
}

}  // namespace

CausalConv::CausalConv(Loader& loader, ops::PackedMatrix weight, int64_t dilation, const Spec& spec,
                       int64_t stride)
    : weight_(std::move(weight)), dilation_(dilation) {
  if (!spec.snake.empty()) {
    const Tensor alpha = loader.host_f32(spec.snake, {1, spec.in, 1});
    snake_alpha_ = loader.made(DType::f32, {stride * spec.in}, [&] { return tiled(alpha, stride); });
  }
  history_ = loader.layout().add_history((weight_.taps - 1) * dilation_, weight_.depth);
}

CausalConv CausalConv::plain(Loader& loader, const Spec& spec) {
  return {loader, loader.conv(spec.prefix, spec.in, spec.out, spec.kernel), spec.dilation, spec, 1};
}

CausalConv CausalConv::exact(Loader& loader, const Spec& spec) {
  return {loader, loader.exact_conv(spec.prefix, spec.in, spec.out, spec.kernel), spec.dilation, spec, 1};
}

CausalConv CausalConv::strided(Loader& loader, const Spec& spec, int64_t stride) {
  return {loader, loader.strided_conv(spec.prefix, spec.in, spec.out, spec.kernel, stride), 1, spec, stride};
}

CausalConv CausalConv::transposed(Loader& loader, const Spec& spec, int64_t stride) {
  return {loader, loader.transposed_conv(spec.prefix, spec.in, spec.out, spec.kernel, stride), 1, spec, 1};
}

void CausalConv::forward(const Batch& batch, TensorView x, TensorView y,
                         const ops::Epilogue& epilogue) const {
  const int64_t rows = batch.rows.rows();
  const ops::ConvInput input{x.reshape({x.elements() / weight_.depth, weight_.depth}), batch.conv_rows(),
                             batch.history(history_), snake_alpha_};
  ops::causal_conv1d(*batch.ctx, input, weight_, dilation_, y.reshape({rows, weight_.outputs}), epilogue);
}

ops::ConvReader CausalConv::reader(int64_t channels) const {
  const int64_t rows_of_one = weight_.depth / channels;  // strided ones read so many rows side by side
  return {.weight = &weight_,
          .snake_alpha = snake_alpha_.view().slice(0, channels),
          .look_back = (weight_.taps - 1) * dilation_ * rows_of_one};
}

ResidualUnit::ResidualUnit(Loader& loader, const std::string& prefix, int64_t channels, int64_t dilation)
    : conv7_(CausalConv::plain(loader, {.prefix = prefix + ".block.1.conv",
                                        .in = channels,
                                        .out = channels,
                                        .kernel = kResidualKernel,
                                        .dilation = dilation,
                                        .snake = prefix + ".block.0.alpha"})),
      conv1_(CausalConv::plain(loader, {.prefix = prefix + ".block.3.conv",
                                        .in = channels,
                                        .out = channels,
                                        .snake = prefix + ".block.2.alpha"})) {}

ops::ResidualConvs ResidualUnit::convs() const {
  return {.wide = &conv7_.weight(),
          .dilation = conv7_.dilation(),
          .narrow = &conv1_.weight(),
          .wide_alpha = conv7_.snake_alpha(),
          .narrow_alpha = conv1_.snake_alpha()};
}

bool ResidualUnit::is_apart(const Batch& batch) const {
  return ops::residual_unit_is_apart(*batch.ctx, convs(), batch.rows.rows());
}

void ResidualUnit::forward(const Batch& batch, TensorView x, TensorView y) const {
  ops::residual_unit(*batch.ctx, x, batch.conv_rows(), batch.history(conv7_.history()), convs(), y);
}

bool ResidualUnit::makes_ready(const Batch& batch, const CausalConv& reader) const {
  const ops::ConvReader next = reader.reader(conv7_.weight().depth);
  const int64_t rows = batch.rows.rows();
  return batch.sequences() * next.look_back <= rows && ops::makes_ready(*batch.ctx, convs(), rows, next);
}

TensorView ResidualUnit::forward_for(const Batch& batch, const CausalConv& reader, TensorView x,
                                     TensorView y) const {
  const int64_t channels = conv7_.weight().depth;
  const ops::ConvReader next = reader.reader(channels);
  const TensorView ready(y.data(), next.weight->format.operand,
                         {batch.rows.rows() + batch.sequences() * next.look_back, channels}, y.device());
  ops::residual_unit_for(*batch.ctx, x, batch.conv_rows(), batch.history(conv7_.history()), convs(), next,
                         ready);
  return ready;
}

TensorView run_units(const Batch& batch, std::span<const ResidualUnit> units, const CausalConv* reader,
                     TensorView y, FunctionRef<void(TensorView)> fill) {
  const Workspace::Scope scope(batch.workspace());
  const auto is_apart = [&](const ResidualUnit& unit) { return unit.is_apart(batch); };
  const auto moves = std::ranges::count_if(units, is_apart);
  const TensorView other = moves > 0 ? batch.workspace().like(y) : y;
  TensorView from = moves % 2 == 0 ? y : other;
  fill(from);
  for (const ResidualUnit& unit : units) {
    if (reader && &unit == &units.back() && unit.makes_ready(batch, *reader))
      return unit.forward_for(batch, *reader, from, y);
    const TensorView to = !is_apart(unit) ? from : from.data() == y.data() ? other : y;
    unit.forward(batch, from, to);
    from = to;
  }
  return y;
}

TensorView run_units(const Batch& batch, std::span<const ResidualUnit> units, const CausalConv& reader,
                     int64_t channels, FunctionRef<void(TensorView)> fill) {
  TensorView from = batch.alloc(channels);
  fill(from);
  std::optional<TensorView> other;
  for (const ResidualUnit& unit : units) {
    if (!unit.is_apart(batch)) {
      unit.forward(batch, from, from);
      continue;
    }
    if (!other) other = batch.alloc(channels);
    if (&unit == &units.back() && unit.makes_ready(batch, reader))
      return unit.forward_for(batch, reader, from, *other);
    unit.forward(batch, from, *other);
    std::swap(from, *other);
  }
  return from;
}

ConvNextBlock::ConvNextBlock(Loader& loader, const std::string& prefix, int64_t channels)
    : channels_(channels), history_(loader.layout().add_history(kDepthwiseKernel - 1, channels)) {
  const Tensor stored = loader.host_f32(prefix + ".dwconv.conv.weight", {channels, 1, kDepthwiseKernel});
  depthwise_ = loader.made(DType::f32, {kDepthwiseKernel, channels}, [&] { return transposed(stored); });
  depthwise_bias_ = loader.f32(prefix + ".dwconv.conv.bias", {channels});
  norm_weight_ = loader.f32(prefix + ".norm.weight", {channels});
  norm_bias_ = loader.f32(prefix + ".norm.bias", {channels});
  expand_ = loader.linear(prefix + ".pwconv1", 4 * channels, channels, /*bias=*/true);
  contract_ = loader.linear(prefix + ".pwconv2", channels, 4 * channels, /*bias=*/true);
  gamma_ = loader.f32(prefix + ".gamma", {channels});
}

void ConvNextBlock::forward(const Batch& batch, TensorView x) const {
  const Workspace::Scope scope(batch.workspace());
  const TensorView h = batch.alloc(channels_);
  const ops::ConvInput input{x, batch.conv_rows(), batch.history(history_), {}};
  ops::depthwise_conv1d(*batch.ctx, input, depthwise_, depthwise_bias_, h);
  ops::layer_norm(*batch.ctx, h, norm_weight_, norm_bias_, kLayerNormEps, h);
  const TensorView wide = batch.alloc(4 * channels_);
  ops::linear(*batch.ctx, h, expand_, wide, {.activation = ops::Activation::gelu});
  ops::linear(*batch.ctx, wide, contract_, x, {.accumulate = true, .scale = gamma_});
}

}  // namespace shoal::dac
