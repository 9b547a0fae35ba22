#include "models/dac/loader.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "ops/round_weights.h"
#include "ops/transfer.h"
#include "weights/random_values.h"

namespace shoal::dac {
namespace {

using weights::Weight;

// Axes that count the outputs of kernels.
constexpr int kOfConv = 0, kOfTransposed = 1;

ops::StoredMatrix stored(const Weight& weight) { return {weight.view, weight.scales}; }

weights::Spread distribution(std::string_view name, const Shape& shape) {
  if (name.ends_with("norm.weight") || name.ends_with("alpha")) return {1, 0.25f};
  if (name.ends_with("gamma")) return {0.1f, 0.05f};
  if (name.ends_with("bias")) return {0, 0.05f};
  if (name.ends_with("codebook.weight")) return {0, 1};
  const double fan_in = static_cast<double>(shape.elements()) / static_cast<double>(shape[0]);
  return {0, static_cast<float>(std::sqrt(3 / fan_in))};  // variance 1 / fan_in
}

}  // namespace

std::unique_ptr<weights::TensorSource> random_weights(uint64_t seed, ThreadTeam& team) {
  return weights::draw_weights(
      [values = weights::RandomValues(seed, team)](const std::string& name, const Shape& shape) {
        return values.draw(name, shape, distribution(name, shape));
      });
}

Tensor Loader::placed(Tensor host) {
  bytes_ += host.bytes();
  return ops::resident(ctx_, std::move(host));
}

Tensor Loader::made(DType dtype, const Shape& shape, FunctionRef<Tensor()> make) {
  if (names_only()) return placed(Tensor::sized(dtype, shape, ctx_.device));
  Tensor host = make();
  CHECK(host.dtype() == dtype && host.shape() == shape, "made ", name_of(host.dtype()), host.shape(),
        ", counted ", name_of(dtype), shape);
  return placed(std::move(host));
}

ops::PackedMatrix Loader::counted(ops::PackedMatrix matrix) {
  bytes_ += matrix.bytes();
  return matrix;
}

Tensor Loader::host_f32(const std::string& name, const Shape& shape) {
  return weights::to_f32(source_.tensor(name, shape), ctx_.team);
}

Weight Loader::in_format(Weight weight, int outputs_axis) const {
  if (weight.view.dtype() != DType::i8 || format_.weights == DType::i8) return weight;
  return Weight(ops::widen_int8(*ctx_.team, weight.view, weight.scales, outputs_axis, format_.operand));
}

Weight Loader::matrix(const std::string& name, const Shape& shape) {
  return in_format(source_.layer_matrix(name, shape), 0);
}

Weight Loader::kernel(const std::string& prefix, const Shape& shape, int outputs_axis) {
  return in_format(source_.layer_convolution(prefix, shape, outputs_axis), outputs_axis);
}

ops::PackedMatrix Loader::linear(const std::string& prefix, int64_t outputs, int64_t depth, bool bias) {
  const Weight weight = matrix(prefix + ".weight", {outputs, depth});
  const Weight offset = bias ? source_.tensor(prefix + ".bias", {outputs}) : Weight{};
  return counted(ops::pack_matrix(ctx_, stored(weight), offset.view, format_));
}

ops::PackedMatrix Loader::gate_up(const std::string& gate, const std::string& up, int64_t hidden,
                                  int64_t depth) {
  const Weight w1 = matrix(gate + ".weight", {hidden, depth});
  const Weight w3 = matrix(up + ".weight", {hidden, depth});
  return counted(ops::pack_gate_up(ctx_, stored(w1), stored(w3), format_));
}

ops::PackedMatrix Loader::conv(const std::string& prefix, int64_t in, int64_t out, int64_t size) {
  const Weight weight = kernel(prefix, {out, in, size}, kOfConv);
  const Weight bias = source_.tensor(prefix + ".bias", {out});
  return counted(ops::pack_conv1d(ctx_, stored(weight), bias.view, format_));
}

ops::PackedMatrix Loader::exact_conv(const std::string& prefix, int64_t in, int64_t out, int64_t size) {
  const Weight weight = source_.convolution(prefix, {out, in, size});
  const Weight bias = source_.tensor(prefix + ".bias", {out});
  return counted(ops::pack_conv1d(ctx_, weight.view, bias.view, DType::f32));
}

ops::PackedMatrix Loader::strided_conv(const std::string& prefix, int64_t in, int64_t out, int64_t size,
                                       int64_t stride) {
  const Weight weight = kernel(prefix, {out, in, size}, kOfConv);
  const Weight bias = source_.tensor(prefix + ".bias", {out});
  return counted(ops::pack_strided_conv1d(ctx_, stored(weight), bias.view, stride, format_));
}

ops::PackedMatrix Loader::transposed_conv(const std::string& prefix, int64_t in, int64_t out, int64_t size,
                                          int64_t stride) {
  const Weight weight = kernel(prefix, {in, out, size}, kOfTransposed);
  const Weight bias = source_.tensor(prefix + ".bias", {out});
  return counted(ops::pack_transposed_conv1d(ctx_, stored(weight), bias.view, stride, format_));
}

}  // namespace shoal::dac
