#include "models/dac/loader.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "ops/transfer.h"
#include "weights/random_values.h"

namespace shoal::dac {
namespace {

using weights::Weight;

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

ops::PackedMatrix Loader::linear(const std::string& prefix, int64_t outputs, int64_t depth, bool bias) {
  const Weight weight = source_.tensor(prefix + ".weight", {outputs, depth});
  const Weight offset = bias ? source_.tensor(prefix + ".bias", {outputs}) : Weight{};
  return counted(ops::pack_matrix(ctx_, weight.view, offset.view, dtype_));
}

ops::PackedMatrix Loader::gate_up(const std::string& gate, const std::string& up, int64_t hidden,
                                  int64_t depth) {
  const Weight w1 = source_.tensor(gate + ".weight", {hidden, depth});
  const Weight w3 = source_.tensor(up + ".weight", {hidden, depth});
  return counted(ops::pack_gate_up(ctx_, w1.view, w3.view, dtype_));
}

ops::PackedMatrix Loader::conv(const std::string& prefix, int64_t in, int64_t out, int64_t kernel,
                               DType dtype) {
  const Weight weight = source_.convolution(prefix, {out, in, kernel});
  const Weight bias = source_.tensor(prefix + ".bias", {out});
  return counted(ops::pack_conv1d(ctx_, weight.view, bias.view, dtype));
}

ops::PackedMatrix Loader::strided_conv(const std::string& prefix, int64_t in, int64_t out, int64_t kernel,
                                       int64_t stride) {
  const Weight weight = source_.convolution(prefix, {out, in, kernel});
  const Weight bias = source_.tensor(prefix + ".bias", {out});
  return counted(ops::pack_strided_conv1d(ctx_, weight.view, bias.view, stride, dtype_));
}

ops::PackedMatrix Loader::transposed_conv(const std::string& prefix, int64_t in, int64_t out, int64_t kernel,
                                          int64_t stride) {
  const Weight weight = source_.convolution(prefix, {in, out, kernel});
  const Weight bias = source_.tensor(prefix + ".bias", {out});
  return counted(ops::pack_transposed_conv1d(ctx_, weight.view, bias.view, stride, dtype_));
}

}  // namespace shoal::dac
