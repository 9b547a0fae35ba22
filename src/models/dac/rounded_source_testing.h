// Random weights of a codec, of which what may be kept in 8 bits is rounded by arithmetic of its own: given
// as integers, or as the floats that they stand for.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bf16.h"
#include "base/f16.h"
#include "models/dac/loader.h"

namespace shoal::dac {

inline float rounded_as(DType dtype, float value) {
  if (dtype == DType::bf16) return round_to_bf16(value);
  return dtype == DType::f16 ? f16_to_float(float_to_f16(value)) : value;
}

class RoundedSource final : public weights::TensorSource {
 public:
  enum class Form { integers, floats };
  // operand: what the weights are multiplied by.
  RoundedSource(uint64_t seed, ThreadTeam& team, Form form, DType operand)
      : random_(random_weights(seed, team)), form_(form), operand_(operand) {}

  bool contains(std::string_view name) const override { return random_->contains(name); }
  weights::Weight tensor(const std::string& name, const Shape& shape) override {
    return random_->tensor(name, shape);
  }
  weights::Weight convolution(const std::string& prefix, const Shape& shape) override {
    return random_->convolution(prefix, shape);
  }
  weights::Weight layer_matrix(const std::string& name, const Shape& shape) override {
    return rounded(random_->tensor(name, shape), {1, shape[0], shape[1]});
  }
  weights::Weight layer_convolution(const std::string& prefix, const Shape& shape,
                                    int outputs_axis) override {
    const Places places =
        outputs_axis == 0 ? Places{1, shape[0], shape[1] * shape[2]} : Places{shape[0], shape[1], shape[2]};
    return rounded(random_->convolution(prefix, shape), places);
  }

 private:
  // A tensor as [outer, outputs, inner].
  struct Places {
    int64_t outer, outputs, inner;
    template <typename What>
    void of(int64_t output, What&& what) const {
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) what((o * outputs + output) * inner + i);
    }
  };

  weights::Weight rounded(const weights::Weight& weight, const Places& places) {
    const float* const values = weight.view.as<float>();
    Tensor integers(DType::i8, weight.view.shape()), floats(DType::f32, weight.view.shape());
    Tensor& scales = scales_.emplace_back(DType::f32, Shape{places.outputs});
    for (int64_t n = 0; n < places.outputs; ++n) {
      float largest = 0;
      places.of(n, [&](int64_t at) { largest = std::max(largest, std::abs(values[at])); });
      scales.as<float>()[n] = largest / 127.0f;
      const float scale = rounded_as(operand_, largest / 127.0f), factor = 127.0f / largest;
      places.of(n, [&](int64_t at) {
        const float integer = std::nearbyint(values[at] * factor);
        integers.as<int8_t>()[at] = static_cast<int8_t>(integer);
        floats.as<float>()[at] = rounded_as(operand_, integer * scale);
      });
    }
    if (form_ == Form::floats) return weights::Weight(std::move(floats));
    weights::Weight made(std::move(integers));
    made.scales = scales;
    return made;
  }

  std::unique_ptr<weights::TensorSource> random_;
  Form form_;
  DType operand_;
  std::vector<Tensor> scales_;
};

}  // namespace shoal::dac
