#include "models/kokoro/loader.h"

#include "base/error.h"
#include "ops/transfer.h"

namespace shoal::kokoro {
namespace {

// Channel by channel, in double: folds the weight and bias of a norm into the rows of scales and shifts that
// follow it. `columns`: of the style, or 1 for the biases, whose scale is counted from 1.
void fold_norm(const Tensor& weight, const Tensor& bias, int64_t columns, double one, std::span<float> rows) {
  const int64_t channels = weight.elements();
  for (int64_t c = 0; c < channels; ++c) {
    const double w = weight.as<float>()[c], b = bias.as<float>()[c];
    for (int64_t i = 0; i < columns; ++i) {
      float& scale = rows[static_cast<size_t>(c * columns + i)];
      float& shift = rows[static_cast<size_t>((channels + c) * columns + i)];
      const double whole = one + double{scale};
      shift = static_cast<float>(double{shift} + whole * b);
      scale = static_cast<float>(whole * w - one);
    }
  }
}

}  // namespace

StyleAffine Loader::style_affine(const std::string& fc, int64_t channels, int64_t style_dim) {
  StyleAffine affine{host_f32(fc + ".weight", {2 * channels, style_dim}),
                     host_f32(fc + ".bias", {2 * channels})};
  CHECK(fc.ends_with(".fc"), fc);
  const std::string norm = fc.substr(0, fc.size() - 2) + "norm";
  if (!source_.contains(norm + ".weight") && !source_.contains(norm + ".bias")) return affine;
  const Tensor weight = host_f32(norm + ".weight", {channels}), bias = host_f32(norm + ".bias", {channels});
  fold_norm(weight, bias, style_dim, 0, affine.weight.span<float>());
  fold_norm(weight, bias, 1, 1, affine.bias.span<float>());
  return affine;
}

ops::PackedMatrix Loader::linear(const std::string& prefix, int64_t outputs, int64_t depth, bool bias) {
  const Tensor weight = host_f32(prefix + ".weight", {outputs, depth});
  const Tensor offset = bias ? host_f32(prefix + ".bias", {outputs}) : Tensor();
  return counted(ops::pack_matrix(ctx_, weight, offset, dtype_));
}

Tensor Loader::made(const Shape& shape, FunctionRef<Tensor()> make) {
  if (names_only()) return placed(Tensor::sized(DType::f32, shape, ctx_.device));
  Tensor host = make();
  CHECK(host.shape() == shape, "made ", host.shape(), ", counted ", shape);
  return placed(std::move(host));
}

Tensor Loader::placed(Tensor host) {
  bytes_ += host.bytes();
  return ops::resident(ctx_, std::move(host));
}

}  // namespace shoal::kokoro
