#include "models/kokoro/weight_source.h"

#include <cmath>
#include <string_view>

#include "weights/convert.h"
#include "weights/random_values.h"
#include "weights/weight_norm.h"

namespace shoal::kokoro {
namespace {

class CheckpointWeights final : public WeightSource {
 public:
  CheckpointWeights(const weights::Checkpoint& checkpoint, ThreadTeam& team)
      : checkpoint_(checkpoint), team_(team) {}
  bool contains(const std::string& name) const override { return checkpoint_.contains(name); }
  Tensor tensor(const std::string& name, const Shape& shape) override {
    return weights::to_f32(checkpoint_.get(name, shape), &team_);
  }
  Tensor convolution(const std::string& prefix, const Shape& shape) override {
    return weights::conv_weight(checkpoint_, prefix, shape, &team_);
  }

 private:
  const weights::Checkpoint& checkpoint_;
  ThreadTeam& team_;
};

// 0.06 is the sigmoid of -2.75, and 50 bins of it are three frames.
constexpr float kDurationBias = -2.75f;
constexpr float kPitchHz = 150;

bool has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

weights::Spread distribution(std::string_view name, const Shape& shape) {
  if (has(name, "orm.weight") || has(name, "alpha") || name.ends_with("gamma")) return {1, 0.25f};
  if (name.ends_with("duration_proj.linear_layer.bias")) return {kDurationBias, 0.25f};
  if (name.ends_with("F0_proj.bias")) return {kPitchHz, 5};
  if (name.ends_with("conv_post.bias")) return {-1, 0.05f};  // of logarithms: a voice of moderate loudness
  if (has(name, "bias") || name.ends_with("beta")) return {0, 0.05f};
  if (has(name, "embeddings.") || has(name, "embedding.")) return {0, 1};
  // What an output sums over. A transposed kernel [in, out, taps] is twice its stride long.
  const bool transposed = has(name, ".ups.");
  const double fan_in = transposed ? 2.0 * static_cast<double>(shape[0])
                                   : static_cast<double>(shape.elements()) / static_cast<double>(shape[0]);
  const auto keeping = static_cast<float>(std::sqrt(3 / fan_in));  // variance 1 / fan_in
  if (name.ends_with("F0_proj.weight")) return {0, 20 * keeping};
  if (name.ends_with("F0_conv.weight")) return {0, keeping / kPitchHz};
  if (name.ends_with("conv_post.weight")) return {0, 0.5f * keeping};  // its outputs are exponents
  return {0, keeping};
}

class RandomWeights final : public WeightSource {
 public:
  RandomWeights(uint64_t seed, ThreadTeam& team) : values_(seed, team) {}
  bool contains(const std::string& name) const override { return !has(name, ".norm."); }  // as published
  Tensor tensor(const std::string& name, const Shape& shape) override {
    return values_.draw(name, shape, distribution(name, shape));
  }
  Tensor convolution(const std::string& prefix, const Shape& shape) override {
    return tensor(prefix + ".weight", shape);
  }

 private:
  weights::RandomValues values_;
};

}  // namespace

std::unique_ptr<WeightSource> read_weights(const weights::Checkpoint& checkpoint, ThreadTeam& team) {
  return std::make_unique<CheckpointWeights>(checkpoint, team);
}

std::unique_ptr<WeightSource> random_weights(uint64_t seed, ThreadTeam& team) {
  return std::make_unique<RandomWeights>(seed, team);
}

}  // namespace shoal::kokoro
