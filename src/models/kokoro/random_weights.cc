#include <cmath>
#include <string_view>

#include "models/kokoro/loader.h"
#include "weights/random_values.h"

namespace shoal::kokoro {
namespace {

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

}  // namespace

std::unique_ptr<weights::TensorSource> random_weights(uint64_t seed, ThreadTeam& team) {
  return weights::draw_weights(
      [values = weights::RandomValues(seed, team)](const std::string& name, const Shape& shape) {
        return values.draw(name, shape, distribution(name, shape));
      },
      /*lacks=*/".norm.");  // as published
}

}  // namespace shoal::kokoro
