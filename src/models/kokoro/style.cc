#include "models/kokoro/style.h"

#include <algorithm>

#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/transfer.h"

namespace shoal::kokoro {

SharedStyles::SharedStyles(std::span<const std::span<const float>> styles) {
  for (const std::span<const float> style : styles) {
    const auto same = std::ranges::find_if(
        first, [&](int32_t u) { return std::ranges::equal(styles[static_cast<size_t>(u)], style); });
    of.push_back(static_cast<int32_t>(same - first.begin()));
    if (same == first.end()) first.push_back(static_cast<int32_t>(of.size()) - 1);
  }
}

StyleColumns StyleTable::add(Loader& loader, const std::string& prefix, int64_t channels, float scale_bias) {
  const auto [weight, bias] = loader.style_affine(prefix, channels, style_dim_);
  if (!loader.names_only()) {
    weights_.insert(weights_.end(), weight.as<float>(), weight.as<float>() + weight.elements());
    for (int64_t i = 0; i < 2 * channels; ++i)
      biases_.push_back(bias.as<float>()[i] + (i < channels ? scale_bias : 0.0f));
  }
  const StyleColumns columns{.begin = columns_, .channels = channels};
  columns_ += 2 * channels;
  return columns;
}

void StyleTable::pack(Loader& loader) {
  // In f32 at any model precision: it is small, and every norm depends on it.
  matrix_ = loader.counted(
      ops::pack_matrix(loader.ctx(), TensorView::of(weights_.data(), DType::f32, {columns_, style_dim_}),
                       TensorView::of(biases_.data(), DType::f32, {columns_}), DType::f32));
  weights_ = {};
  biases_ = {};
}

void StyleTable::forward(ops::Context& ctx, TensorView styles, const SharedStyles* shared,
                         TensorView affines) const {
  const int64_t count = shared ? std::ssize(shared->first) : styles.dim(0);
  if (count == styles.dim(0)) return ops::linear(ctx, styles, matrix_, affines);
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView distinct = ctx.workspace->alloc(DType::f32, {count, style_dim_});
  const TensorView own = ctx.workspace->alloc(DType::f32, {count, columns_});
  ops::gather_rows(ctx, styles, ops::upload(ctx, shared->first), distinct);
  ops::linear(ctx, distinct, matrix_, own);
  ops::gather_rows(ctx, own, ops::upload(ctx, shared->of), affines);
}

}  // namespace shoal::kokoro
