#include "models/dac/loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/transfer.h"
#include "weights/convert.h"
#include "weights/random_values.h"
#include "weights/weight_norm.h"

namespace shoal::dac {
namespace {

class CheckpointWeights final : public WeightSource {
 public:
  CheckpointWeights(const weights::Checkpoint& checkpoint, ThreadTeam& team)
      : checkpoint_(checkpoint), team_(team) {}
  Weight tensor(const std::string& name, const Shape& shape) override {
    const TensorView view = checkpoint_.get(name, shape);
    release_after(view.bytes());
    return {{}, view};
  }
  Weight convolution(const std::string& prefix, const Shape& shape) override {
    Tensor folded = weights::conv_weight(checkpoint_, prefix, shape, &team_);
    const TensorView view = folded;
    release_after(view.bytes());
    return {std::move(folded), view};
  }

 private:
  // Mapped pages that were read would stand beside the packed copies; views outlive their release.
  void release_after(int64_t bytes) {
    constexpr int64_t kReleaseEvery = int64_t{128} << 20;
    unreleased_ += bytes;
    if (unreleased_ < kReleaseEvery) return;
    checkpoint_.release_pages();
    unreleased_ = 0;
  }

  int64_t unreleased_ = 0;
  const weights::Checkpoint& checkpoint_;
  ThreadTeam& team_;
};

class RandomWeights final : public WeightSource {
 public:
  RandomWeights(uint64_t seed, ThreadTeam& team) : values_(seed, team) {}
  Weight tensor(const std::string& name, const Shape& shape) override {
    Tensor values = values_.draw(name, shape, distribution(name, shape));
    const TensorView view = values;
    return {std::move(values), view};
  }
  Weight convolution(const std::string& prefix, const Shape& shape) override {
    return tensor(prefix + ".weight", shape);
  }

 private:
  static weights::Spread distribution(std::string_view name, const Shape& shape) {
    if (name.ends_with("norm.weight") || name.ends_with("alpha")) return {1, 0.25f};
    if (name.ends_with("gamma")) return {0.1f, 0.05f};
    if (name.ends_with("bias")) return {0, 0.05f};
    if (name.ends_with("codebook.weight")) return {0, 1};
    const double fan_in = static_cast<double>(shape.elements()) / static_cast<double>(shape[0]);
    return {0, static_cast<float>(std::sqrt(3 / fan_in))};  // variance 1 / fan_in
  }

  weights::RandomValues values_;
};

}  // namespace

std::unique_ptr<WeightSource> read_weights(const weights::Checkpoint& checkpoint, ThreadTeam& team) {
  return std::make_unique<CheckpointWeights>(checkpoint, team);
}

std::unique_ptr<WeightSource> random_weights(uint64_t seed, ThreadTeam& team) {
  return std::make_unique<RandomWeights>(seed, team);
}

Tensor Loader::placed(Tensor host) {
  bytes_ += host.bytes();
  return ops::resident(ctx_, std::move(host));
}

ops::PackedMatrix Loader::counted(ops::PackedMatrix matrix) {
  bytes_ += matrix.bytes();
  return matrix;
}

Tensor Loader::host_f32(const std::string& name, const Shape& shape) {
  Weight weight = source_.tensor(name, shape);
  return weight.owned.empty() ? weights::to_f32(weight.view, ctx_.team) : std::move(weight.owned);
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
