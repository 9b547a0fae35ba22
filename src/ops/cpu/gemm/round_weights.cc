#include "ops/round_weights.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cpu/gemm/integers.h"
#include "ops/weight_source.h"

namespace shoal::ops {
namespace {

constexpr int64_t kRoundGrain = 16;  // outputs

// values: the weights of one output. Returns its scale.
float round_row(const std::vector<float>& values, int8_t* integers, RoundingError& error) {
  cpu::IntegerScale found;
  found.add(values.data(), static_cast<int>(values.size()));
  const float scale = found.scale(), factor = found.factor();
  for (size_t k = 0; k < values.size(); ++k) {
    integers[k] = cpu::nearest_int8(values[k] * factor);
    const double value = values[k], off = value - double{scale} * integers[k];
    error.difference += off * off;
    error.weights += value * value;
  }
  error.worst = error.share();
  return scale;
}

}  // namespace

double RoundingError::share() const { return weights > 0 ? std::sqrt(difference / weights) : 0; }

void RoundingError::add(const RoundingError& other) {
  difference += other.difference;
  weights += other.weights;
  worst = std::max(worst, other.worst);
}

RoundingError round_to_int8(ThreadTeam& team, TensorView weight, TensorView integers, TensorView scales) {
  CHECK(weight.rank() == 2 && weight.is_contiguous() && integers.is_contiguous() &&
            integers.shape() == weight.shape() && scales.shape() == Shape{weight.dim(0)},
        "weight ", weight.shape(), ", integers ", integers.shape(), ", scales ", scales.shape());
  const int64_t depth = weight.dim(1);
  std::vector<RoundingError> errors(static_cast<size_t>(weight.dim(0)));
  team.parallel_for(weight.dim(0), kRoundGrain, [&](int64_t begin, int64_t end, int) {
    std::vector<float> values(static_cast<size_t>(depth));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t k = 0; k < depth; ++k)
        values[static_cast<size_t>(k)] = load_float(weight.data(), weight.dtype(), row * depth + k);
      scales.as<float>()[row] =
          round_row(values, integers.row<int8_t>(row), errors[static_cast<size_t>(row)]);
    }
  });
  RoundingError all;
  for (int64_t row = 0; row < weight.dim(0); ++row) {
    if (!std::isfinite(scales.as<float>()[row]))
      fail(ErrorCode::corrupt_file, "a weight of output ", row, " is not a finite number");
    all.add(errors[static_cast<size_t>(row)]);
  }
  return all;
}

}  // namespace shoal::ops
