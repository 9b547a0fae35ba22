#include "ops/round_weights.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/bf16.h"
#include "base/e4m3.h"
#include "base/f16.h"
#include "ops/cpu/gemm/integers.h"
#include "ops/cpu/gemm/nibbles.h"
#include "ops/weight_source.h"
#include "tensor/formats.h"

namespace shoal::ops {
namespace {

constexpr int64_t kRoundGrain = 16;  // outputs

// What weights become, times a scale.
struct Int8 {
  using Stored = int8_t;
  static constexpr float kMost = 127;
  static Stored nearest(float scaled) { return cpu::nearest_int8(scaled); }
  static double value(Stored integer) { return integer; }
};
struct Fp8 {
  using Stored = E4m3;
  static constexpr float kMost = kE4m3Most;
  static Stored nearest(float scaled) { return float_to_e4m3(scaled); }
  static double value(Stored bits) { return double{e4m3_to_float(bits)}; }
};

// values: the weights of one output. Returns its scale.
template <typename Form>
float round_row(const std::vector<float>& values, typename Form::Stored* rounded, RoundingError& error) {
  cpu::IntegerScale found;
  found.add(values.data(), static_cast<int>(values.size()));
  const float scale = found.scale(Form::kMost), factor = found.factor(Form::kMost);
  for (size_t k = 0; k < values.size(); ++k) {
    rounded[k] = Form::nearest(values[k] * factor);
    const double value = values[k], off = value - double{scale} * Form::value(rounded[k]);
    error.difference += off * off;
    error.weights += value * value;
  }
  error.worst = error.share();
  return scale;
}

// One output's weights, in groups.
void round_row_to_nibbles(const std::vector<float>& values, int64_t group, uint8_t* nibbles, Bf16* scales,
                          Bf16* minima, RoundingError& error) {
  std::fill(nibbles, nibbles + (values.size() + 1) / 2, uint8_t{0});
  for (size_t begin = 0; begin < values.size(); begin += static_cast<size_t>(group)) {
    const size_t end = std::min(values.size(), begin + static_cast<size_t>(group));
    const cpu::NibbleScale found = cpu::find_nibble_scale(&values[begin], static_cast<int>(end - begin));
    *scales++ = found.scale, *minima++ = found.minimum;
    const cpu::NibbleRounding rounding(found);
    for (size_t k = begin; k < end; ++k) {
      const uint8_t nibble = rounding.nibble(values[k]);
      nibbles[k / 2] = static_cast<uint8_t>(nibbles[k / 2] | nibble << (k % 2 * 4));
      const double value = values[k];
      const double off = value - (double{rounding.minimum()} + double{rounding.scale()} * nibble);
      error.difference += off * off;
      error.weights += value * value;
    }
  }
  error.worst = error.share();
}

// The weights of one index of an axis of a dense tensor: pieces of `length` that lie `step` apart.
struct Slice {
  Slice(const Shape& shape, int axis) : pieces(1), length(1) {
    for (int i = 0; i < axis; ++i) pieces *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) length *= shape[i];
    step = shape[axis] * length;
  }
  int64_t size() const { return pieces * length; }
  // Element i of index n.
  int64_t place(int64_t n, int64_t i) const { return i / length * step + n * length + i % length; }

  int64_t pieces, length, step;
};

RoundingError sum_of(const std::vector<RoundingError>& errors, TensorView scales) {
  RoundingError all;
  for (size_t row = 0; row < errors.size(); ++row) {
    if (!std::isfinite(scales.as<float>()[row]))
      fail(ErrorCode::corrupt_file, "a weight of output ", row, " is not a finite number");
    all.add(errors[row]);
  }
  return all;
}

std::vector<float> row_of(TensorView weight, int64_t row) {
  std::vector<float> values(static_cast<size_t>(weight.dim(1)));
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = load_float(weight.data(), weight.dtype(),
                           row * weight.stride(0) + static_cast<int64_t>(k) * weight.stride(1));
  return values;
}

template <typename Form>
RoundingError round_outputs(ThreadTeam& team, TensorView weight, TensorView rounded, TensorView scales) {
  CHECK(weight.rank() == 2 && rounded.is_contiguous() && rounded.shape() == weight.shape() &&
            scales.shape() == Shape{weight.dim(0)},
        "weight ", weight.shape(), ", rounded ", rounded.shape(), ", scales ", scales.shape());
  std::vector<RoundingError> errors(static_cast<size_t>(weight.dim(0)));
  team.parallel_for(weight.dim(0), kRoundGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      scales.as<float>()[row] = round_row<Form>(row_of(weight, row), rounded.row<typename Form::Stored>(row),
                                                errors[static_cast<size_t>(row)]);
  });
  return sum_of(errors, scales);
}

}  // namespace

double RoundingError::share() const { return weights > 0 ? std::sqrt(difference / weights) : 0; }

void RoundingError::add(const RoundingError& other) {
  difference += other.difference;
  weights += other.weights;
  worst = std::max(worst, other.worst);
}

RoundingError round_to_int8(ThreadTeam& team, TensorView weight, TensorView integers, TensorView scales) {
  return round_outputs<Int8>(team, weight, integers, scales);
}

RoundingError round_to_fp8(ThreadTeam& team, TensorView weight, TensorView values, TensorView scales) {
  return round_outputs<Fp8>(team, weight, values, scales);
}

RoundingError round_kernel_to_int8(ThreadTeam& team, TensorView kernel, int axis, TensorView integers,
                                   TensorView scales) {
  CHECK(kernel.rank() == 3 && (axis == 0 || axis == 1) && kernel.is_contiguous() &&
            integers.is_contiguous() && integers.shape() == kernel.shape() &&
            scales.shape() == Shape{kernel.dim(axis)},
        "kernel ", kernel.shape(), ", integers ", integers.shape(), ", scales ", scales.shape());
  const Slice slice(kernel.shape(), axis);
  std::vector<RoundingError> errors(static_cast<size_t>(kernel.dim(axis)));
  team.parallel_for(kernel.dim(axis), kRoundGrain, [&](int64_t begin, int64_t end, int) {
    std::vector<float> values(static_cast<size_t>(slice.size()));
    std::vector<int8_t> rounded(values.size());
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t i = 0; i < slice.size(); ++i)
        values[static_cast<size_t>(i)] = load_float(kernel.data(), kernel.dtype(), slice.place(n, i));
      scales.as<float>()[n] = round_row<Int8>(values, rounded.data(), errors[static_cast<size_t>(n)]);
      for (int64_t i = 0; i < slice.size(); ++i)
        integers.as<int8_t>()[slice.place(n, i)] = rounded[static_cast<size_t>(i)];
    }
  });
  return sum_of(errors, scales);
}

Tensor widen_int8(ThreadTeam& team, TensorView integers, TensorView scales, int axis, DType dtype) {
  CHECK(integers.dtype() == DType::i8 && integers.is_contiguous() && axis < integers.rank() &&
            scales.shape() == Shape{integers.dim(axis)},
        "integers ", integers.shape(), ", scales ", scales.shape());
  const Slice slice(integers.shape(), axis);
  Tensor wide(dtype, integers.shape());
  const auto widen = [&](auto* to, auto round) {
    team.parallel_for(integers.dim(axis), kRoundGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t n = begin; n < end; ++n)
        for (int64_t i = 0; i < slice.size(); ++i) {
          const int64_t at = slice.place(n, i);
          to[at] = round(integers.as<int8_t>()[at], scales.as<float>()[n]);
        }
    });
  };
  if (dtype == DType::f32)
    widen(wide.as<float>(), [](int8_t integer, float scale) { return integer * scale; });
  else if (dtype == DType::bf16)
    widen(wide.as<Bf16>(),
          [](int8_t integer, float scale) { return float_to_bf16(integer * round_to_bf16(scale)); });
  else
    widen(wide.as<F16>(), [](int8_t integer, float scale) {
      return float_to_f16(integer * f16_to_float(float_to_f16(scale)));
    });
  return wide;
}

RoundingError round_to_int4(ThreadTeam& team, TensorView weight, int64_t group, const NibbleMatrix& to) {
  CHECK(weight.rank() == 2 && is_group_of_u4(group), "weight ", weight.shape(), " in groups of ", group);
  const int64_t outputs = weight.dim(0), depth = weight.dim(1), groups = (depth + group - 1) / group;
  CHECK(to.nibbles.shape() == Shape({outputs, (depth + 1) / 2}) && to.nibbles.is_contiguous() &&
            to.scales.shape() == Shape({outputs, groups}) && to.minima.shape() == to.scales.shape(),
        "weight ", weight.shape(), ", nibbles ", to.nibbles.shape(), ", scales ", to.scales.shape());
  std::vector<RoundingError> errors(static_cast<size_t>(outputs));
  team.parallel_for(outputs, kRoundGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      round_row_to_nibbles(row_of(weight, row), group, to.nibbles.row<uint8_t>(row), to.scales.row<Bf16>(row),
                           to.minima.row<Bf16>(row), errors[static_cast<size_t>(row)]);
  });
  RoundingError all;
  for (int64_t row = 0; row < outputs; ++row) {
    if (!std::isfinite(errors[static_cast<size_t>(row)].difference))
      fail(ErrorCode::corrupt_file, "a weight of output ", row, " is not a finite number");
    all.add(errors[static_cast<size_t>(row)]);
  }
  return all;
}

}  // namespace shoal::ops
