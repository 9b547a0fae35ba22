#include "models/kokoro/layers.h"

#include <array>
#include <numbers>
#include <utility>

#include "ops/linear.h"
#include "ops/segment_norm.h"

namespace shoal::kokoro {
namespace {

constexpr float kHalfPower = static_cast<float>(1 / std::numbers::sqrt2);

// [channels, 1, 3] -> [3, channels]
Tensor by_tap(TensorView kernel) {
  const int64_t channels = kernel.dim(0);
  Tensor out(DType::f32, {3, channels});
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < 3; ++tap)
      out.as<float>()[tap * channels + c] = kernel.as<float>()[c * 3 + tap];
  }
  return out;
}

}  // namespace

ops::PackedMatrix load_conv(Loader& loader, const std::string& prefix, const Shape& shape, bool bias,
                            float factor) {
  const Tensor weight = loader.convolution(prefix, shape);
  const Tensor shift = bias ? loader.host_f32(prefix + ".bias", {shape[0]}) : Tensor();
  for (const Tensor* tensor : {&weight, &shift}) {
    if (tensor->empty() || loader.names_only()) continue;
    for (float& value : tensor->span<float>()) value *= factor;
  }
  return loader.counted(ops::pack_conv1d(loader.ctx(), weight, shift.view(), loader.dtype()));
}

StyledBlock::StyledBlock(Loader& loader, StyleTable& styles, const Spec& spec) : spec_(spec) {
  const std::string& prefix = spec.prefix;
  norm1_ = styles.add(loader, prefix + ".norm1.fc", spec.in);
  norm2_ = styles.add(loader, prefix + ".norm2.fc", spec.out);
  conv1_ = load_conv(loader, prefix + ".conv1", {spec.out, spec.in, 3}, true);
  conv2_ = load_conv(loader, prefix + ".conv2", {spec.out, spec.out, 3}, true, kHalfPower);
  if (spec.in != spec.out)
    projection_ = load_conv(loader, prefix + ".conv1x1", {spec.out, spec.in, 1}, false, kHalfPower);
  if (!spec.upsample) return;
  const Tensor pool = loader.convolution(prefix + ".pool", {spec.in, 1, 3});
  pool_weight_ = loader.made({3, spec.in}, [&] { return by_tap(pool); });
  pool_bias_ = loader.f32(prefix + ".pool.bias", {spec.in});
}

void StyledBlock::shortcut(const Rows& rows, TensorView x, TensorView y) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  if (!spec_.upsample) {
    if (projection_) return ops::linear(ctx, x, *projection_, y);
    return ops::segment_sum(ctx, std::array{x}, rows.segments, kHalfPower, 1, y);
  }
  // Nearest neighbours of a product are the product of nearest neighbours.
  TensorView once = x;
  if (projection_) {
    once = rows.alloc(spec_.out);
    ops::linear(ctx, x, *projection_, once);
  }
  const TensorView pairs = y.reshape({rows.count(), 2 * spec_.out});
  const float factor = projection_ ? 1 : kHalfPower;
  for (const int64_t half : {int64_t{0}, spec_.out})
    ops::segment_sum(ctx, std::array{once}, rows.segments, factor, 1, pairs.columns(half, half + spec_.out));
}

void StyledBlock::forward(const Rows& rows, TensorView affines, TensorView x, TensorView y) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  const Rows out = spec_.upsample ? rows.at(rows.segments.rate * 2) : rows;
  TensorView input = spec_.upsample ? rows.alloc(spec_.in) : rows.alloc_input(conv1_);
  ops::adain(ctx, x, rows.segments, norm1_.of(affines), kNormEps, {.slope = kSlope}, input);
  if (spec_.upsample) {
    const TensorView doubled = out.alloc(spec_.in);
    ops::double_rows(ctx, input, rows.segments, pool_weight_, pool_bias_, doubled);
    input = doubled;
  }
  const TensorView between = out.alloc(spec_.out);
  centred_conv1d(out, input, conv1_, 1, between);
  const TensorView normed = out.alloc_input(conv2_);
  ops::adain(ctx, between, out.segments, norm2_.of(affines), kNormEps, {.slope = kSlope}, normed);
  shortcut(rows, x, y);
  centred_conv1d(out, normed, conv2_, 1, y, {.accumulate = true});
}

SnakeBlock::SnakeBlock(Loader& loader, StyleTable& styles, const std::string& prefix, int64_t channels,
                       int64_t kernel, const std::vector<int64_t>& dilations) {
  for (size_t i = 0; i < dilations.size(); ++i) {
    const std::string n = std::to_string(i);
    const Shape shape = {channels, channels, kernel};
    const auto half = [&](const std::string& which, int64_t dilation) {
      return Half{.norm = styles.add(loader, prefix + ".adain" + which + ".fc", channels),
                  .alpha = loader.f32(prefix + ".alpha" + which, {1, channels, 1}),
                  .conv = load_conv(loader, prefix + ".convs" + which, shape, true),
                  .dilation = dilation};
    };
    units_.push_back({.first = half("1." + n, dilations[i]), .second = half("2." + n, 1)});
  }
}

void SnakeBlock::forward(const Rows& rows, TensorView affines, TensorView x, TensorView y) const {
  std::vector<ops::SnakeUnit> units;
  for (const Unit& unit : units_)
    units.push_back({.first = half(unit.first, affines), .second = half(unit.second, affines)});
  ops::snake_block(*rows.ctx, x, rows.segments, units, kNormEps, y);
}

ops::SnakeUnit::Half SnakeBlock::half(const Half& half, TensorView affines) {
  return {.style = half.norm.of(affines),
          .alpha = half.alpha.view().reshape({half.conv.outputs}),
          .conv = &half.conv,
          .dilation = half.dilation};
}

}  // namespace shoal::kokoro
