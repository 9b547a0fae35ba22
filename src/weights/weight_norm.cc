#include "weights/weight_norm.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "weights/convert.h"

namespace shoal::weights {
namespace {

Shape gain_shape(const Shape& weight) {
  std::vector<int64_t> dims(static_cast<size_t>(weight.rank()), 1);
  dims[0] = weight[0];
  return Shape(dims);
}

// row: `length` values, replaced by gain * row / ||row||. False when that is undefined.
bool normalise_row(std::span<float> row, float gain) {
  double squares = 0;
  for (float value : row) squares += double{value} * double{value};
  const double scale = double{gain} / std::sqrt(squares);
  if (!(squares > 0) || !std::isfinite(squares) || !std::isfinite(gain)) return false;
  for (float& value : row) value = static_cast<float>(double{value} * scale);
  return true;
}

}  // namespace

Tensor fold_weight_norm(TensorView g, TensorView v, ThreadTeam* team) {
  CHECK(v.rank() >= 1 && g.shape() == gain_shape(v.shape()), "weight norm of g ", g.shape(), ", v ",
        v.shape());
  Tensor weight = to_f32(v, team);
  const Tensor gain = to_f32(g);
  const int64_t rows = v.dim(0);
  const size_t length = rows == 0 ? 0 : static_cast<size_t>(v.elements() / rows);
  const auto fold = [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const auto values = weight.span<float>().subspan(static_cast<size_t>(row) * length, length);
      if (!normalise_row(values, gain.as<float>()[row]))
        fail(ErrorCode::corrupt_file, "weight norm: row ", row, " of a weight ", v.shape(),
             " is zero or not finite, so it has no direction");
    }
  };
  if (team) {
    team->parallel_for(rows, 1, fold);
  } else {
    fold(0, rows, 0);
  }
  return weight;
}

Tensor conv_weight(const Checkpoint& checkpoint, std::string_view prefix, const Shape& expected,
                   ThreadTeam* team) {
  const std::string plain = concat(prefix, ".weight");
  if (checkpoint.contains(plain)) return to_f32(checkpoint.get(plain, expected), team);
  const std::string forms[][2] = {{concat(prefix, ".parametrizations.weight.original0"),
                                   concat(prefix, ".parametrizations.weight.original1")},
                                  {concat(prefix, ".weight_g"), concat(prefix, ".weight_v")}};
  for (const auto& [g, v] : forms) {
    if (!checkpoint.contains(v)) continue;
    const TensorView direction = checkpoint.get(v, expected);
    return fold_weight_norm(checkpoint.get(g, gain_shape(expected)), direction, team);
  }
  fail(ErrorCode::not_found, checkpoint.path(), ": tensor ", plain,
       " is missing, plain or weight-normalised");
}

}  // namespace shoal::weights
