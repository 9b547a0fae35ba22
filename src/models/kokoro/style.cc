#include "models/kokoro/style.h"

#include "ops/linear.h"

namespace shoal::kokoro {

StyleColumns StyleTable::add(Loader& loader, const std::string& prefix, int64_t channels, float scale_bias) {
  const auto [weight, bias] = loader.style_affine(prefix, channels, style_dim_);
  weights_.insert(weights_.end(), weight.as<float>(), weight.as<float>() + weight.elements());
  for (int64_t i = 0; i < 2 * channels; ++i)
    biases_.push_back(bias.as<float>()[i] + (i < channels ? scale_bias : 0.0f));
  const StyleColumns columns{.begin = columns_, .channels = channels};
  columns_ += 2 * channels;
  return columns;
}

void StyleTable::pack(Loader& loader) {
  // In f32 whatever the model's precision: it is small, and every norm depends on it.
  matrix_ = loader.counted(
      ops::pack_matrix(loader.ctx(), TensorView::of(weights_.data(), DType::f32, {columns_, style_dim_}),
                       TensorView::of(biases_.data(), DType::f32, {columns_}), DType::f32));
  weights_ = {};
  biases_ = {};
}

TensorView StyleTable::forward(ops::Context& ctx, TensorView styles) const {
  const TensorView affines = ctx.workspace->alloc(DType::f32, {styles.dim(0), columns_});
  ops::linear(ctx, styles, matrix_, affines);
  return affines;
}

}  // namespace shoal::kokoro
