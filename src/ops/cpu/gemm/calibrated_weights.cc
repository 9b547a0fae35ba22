#include "ops/calibrated_weights.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cpu/gemm/feedback.h"
#include "ops/cpu/gemm/integers.h"
#include "ops/cpu/gemm/nibbles.h"
#include "ops/linear.h"

namespace shoal::ops {
namespace {

using cpu::Feedback;
using cpu::FeedbackRows;

constexpr int64_t kStatisticsRows = 256, kErrorRows = 256;  // multiplied at once
constexpr int64_t kColumnsOfInt8 = 64;

// Integers of 8 bits.
struct StoredInt8 {
  TensorView integers, scales;

  void read(int64_t row, float* values) const {
    const float scale = scales.as<float>()[row];
    const int8_t* from = integers.row<int8_t>(row);
    for (int64_t k = 0; k < integers.dim(1); ++k) values[k] = scale * static_cast<float>(from[k]);
  }
  void copy_row(const StoredInt8& from, int64_t row) const {
    std::copy_n(from.integers.row<int8_t>(row), integers.dim(1), integers.row<int8_t>(row));
    scales.as<float>()[row] = from.scales.as<float>()[row];
  }
};

struct StoredInt4 {
  NibbleMatrix matrix;
  int64_t depth, group;

  cpu::NibbleRounding rounding(int64_t row, int64_t of_group) const {
    return cpu::NibbleRounding(
        {matrix.scales.row<Bf16>(row)[of_group], matrix.minima.row<Bf16>(row)[of_group]});
  }
  void read(int64_t row, float* values) const {
    const uint8_t* from = matrix.nibbles.row<uint8_t>(row);
    for (int64_t begin = 0; begin < depth; begin += group) {
      const cpu::NibbleRounding found = rounding(row, begin / group);
      for (int64_t k = begin; k < std::min(depth, begin + group); ++k)
        values[k] = found.value(static_cast<float>((from[k / 2] >> (k % 2 * 4)) & 15));
    }
  }
  void copy_row(const StoredInt4& from, int64_t row) const {
    std::copy_n(from.matrix.nibbles.row<uint8_t>(row), matrix.nibbles.dim(1),
                matrix.nibbles.row<uint8_t>(row));
    std::copy_n(from.matrix.scales.row<Bf16>(row), matrix.scales.dim(1), matrix.scales.row<Bf16>(row));
    std::copy_n(from.matrix.minima.row<Bf16>(row), matrix.minima.dim(1), matrix.minima.row<Bf16>(row));
  }
};

// How the rows of a block become integers, each with the scale that rounding alone gives it.
class Int8Chooser {
 public:
  Int8Chooser(const StoredInt8& to, const StoredInt8& alone, int64_t first)
      : to_(to), alone_(alone), first_(first) {}

  void begin_group(int row, int64_t, std::span<const float>) {
    if (scales_[row] >= 0) return;
    scales_[row] = to_.scales.as<float>()[first_ + row] = alone_.scales.as<float>()[first_ + row];
  }
  float choose(int row, int64_t column, float target) {
    constexpr float kMost = 127;
    const float scale = scales_[row], scaled = scale > 0 ? target / scale : 0;
    const int8_t integer = cpu::nearest_int8(std::clamp(scaled, -kMost, kMost));
    to_.integers.row<int8_t>(first_ + row)[column] = integer;
    return scale * static_cast<float>(integer);
  }

 private:
  const StoredInt8 &to_, &alone_;
  int64_t first_;
  float scales_[Feedback::kRows] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
};

class Int4Chooser {
 public:
  Int4Chooser(const StoredInt4& to, const Feedback& feedback, int64_t first)
      : to_(to), feedback_(feedback), first_(first) {}

  void begin_group(int row, int64_t begin, std::span<const float> targets) {
    float importance[cpu::kMostInGroup];
    feedback_.importance(begin, {importance, targets.size()});
    const cpu::NibbleScale found =
        cpu::find_nibble_scale(targets.data(), importance, static_cast<int>(targets.size()));
    to_.matrix.scales.row<Bf16>(first_ + row)[begin / to_.group] = found.scale;
    to_.matrix.minima.row<Bf16>(first_ + row)[begin / to_.group] = found.minimum;
    roundings_[row] = cpu::NibbleRounding(found);
  }
  float choose(int row, int64_t column, float target) {
    const float integer = roundings_[row].integer(target);
    uint8_t& both = to_.matrix.nibbles.row<uint8_t>(first_ + row)[column / 2];
    const int nibble = static_cast<int>(integer);
    both = static_cast<uint8_t>(column % 2 == 0 ? nibble : both | nibble << 4);
    return roundings_[row].value(integer);
  }

 private:
  const StoredInt4& to_;
  const Feedback& feedback_;
  int64_t first_;
  std::vector<cpu::NibbleRounding> roundings_{size_t{Feedback::kRows},
                                              cpu::NibbleRounding(cpu::NibbleScale())};
};

// What rounding moves the products of rows by: d products d^T of each row d.
std::vector<double> squares_of_products(Context& ctx, TensorView rows, const PackedMatrix& products) {
  const Tensor moved(DType::f32, rows.shape());
  linear(ctx, rows, products, moved);
  std::vector<double> squares(static_cast<size_t>(rows.dim(0)));
  for (int64_t row = 0; row < rows.dim(0); ++row) {
    double sum = 0;
    for (int64_t k = 0; k < rows.dim(1); ++k)
      sum += double{rows.row<float>(row)[k]} * double{moved.view().row<float>(row)[k]};
    squares[static_cast<size_t>(row)] = std::max(0.0, sum);
  }
  return squares;
}

RoundingError error_of_row(double difference, double weights) {
  RoundingError error{difference, weights, 0};
  error.worst = error.share();
  return error;
}

// Compares what was made with what rounding alone gives, and keeps the better of each row in `made`.
template <typename Stored>
class Judge {
 public:
  Judge(Context& ctx, TensorView weight, const InputStatistics& inputs, const Stored& alone,
        const Stored& made)
      : ctx_(ctx),
        weight_(weight),
        alone_(alone),
        made_(made),
        products_(pack_matrix(ctx, inputs.products(), {}, DType::f32)) {}

  CalibratedError judge() {
    CalibratedError all;
    for (int64_t first = 0; first < weight_.dim(0); first += kErrorRows)
      judge_rows(first, std::min(kErrorRows, weight_.dim(0) - first), all);
    return all;
  }

 private:
  void judge_rows(int64_t first, int64_t count, CalibratedError& all) {
    const Tensor wide(DType::f32, {count, weight_.dim(1)}), off(DType::f32, wide.shape());
    for (int64_t row = 0; row < count; ++row)
      cpu::read_weights(weight_, first + row, wide.view().row<float>(row), 1);
    const auto errors_of = [&](const Stored& stored) {
      for (int64_t row = 0; row < count; ++row) subtract(stored, first + row, wide, row, off);
      return squares_of_products(ctx_, off, products_);
    };
    const std::vector<double> whole = squares_of_products(ctx_, wide, products_), before = errors_of(alone_),
                              after = errors_of(made_);
    for (int64_t row = 0; row < count; ++row) {
      const auto i = static_cast<size_t>(row);
      const bool better = after[i] < before[i];
      if (!better) made_.copy_row(alone_, first + row);
      all.outputs_before.add(error_of_row(before[i], whole[i]));
      all.outputs.add(error_of_row(better ? after[i] : before[i], whole[i]));
      all.weights.add(of_weights(first + row, wide.view().row<float>(row)));
    }
  }

  static void subtract(const Stored& stored, int64_t row, const Tensor& wide, int64_t at, const Tensor& off) {
    float* to = off.view().row<float>(at);
    stored.read(row, to);
    for (int64_t k = 0; k < wide.view().dim(1); ++k) to[k] = wide.view().row<float>(at)[k] - to[k];
  }

  RoundingError of_weights(int64_t row, const float* weights) const {
    std::vector<float> rounded(static_cast<size_t>(weight_.dim(1)));
    made_.read(row, rounded.data());
    double difference = 0, square = 0;
    for (size_t k = 0; k < rounded.size(); ++k) {
      const double weight = weights[k], off = weight - double{rounded[k]};
      difference += off * off, square += weight * weight;
    }
    return error_of_row(difference, square);
  }

  Context& ctx_;
  TensorView weight_;
  const Stored &alone_, &made_;
  PackedMatrix products_;
};

// make(first): what chooses the integers of the rows of a block.
template <typename Make>
void round_in_turn(Context& ctx, TensorView weight, const Feedback& feedback, int64_t group,
                   const Make& make) {
  const int64_t blocks = (weight.dim(0) + Feedback::kRows - 1) / Feedback::kRows;
  ctx.team->parallel_for(blocks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      auto chooser = make(block * Feedback::kRows);
      FeedbackRows(feedback, weight, block * Feedback::kRows).round(group, chooser);
    }
  });
}

// make(feedback, first), as for round_in_turn.
template <typename Stored, typename Make>
CalibratedError round_and_judge(Context& ctx, TensorView weight, const InputStatistics& inputs, int64_t group,
                                const Stored& alone, const Stored& made, const Make& make) {
  if (const Feedback feedback(*ctx.team, inputs.products()); feedback.useful())
    round_in_turn(ctx, weight, feedback, group, [&](int64_t first) { return make(feedback, first); });
  else
    for (int64_t row = 0; row < weight.dim(0); ++row) made.copy_row(alone, row);
  return Judge(ctx, weight, inputs, alone, made).judge();
}

void check_statistics(TensorView weight, const InputStatistics& inputs) {
  CHECK(weight.rank() == 2 && inputs.depth() == weight.dim(1), "weight ", weight.shape(), ", inputs ",
        inputs.depth());
  const float* products = inputs.products().as<float>();
  for (int64_t i = 0; i < inputs.products().elements(); ++i)
    if (!std::isfinite(products[i]))
      fail(ErrorCode::invalid_argument, "what it reads of the calibration's sentences is not finite");
}

}  // namespace

InputStatistics::InputStatistics(int64_t depth) : products_(DType::f32, {depth, depth}) {
  std::fill_n(products_.as<float>(), products_.elements(), 0.0f);
}

void InputStatistics::add(Context& ctx, TensorView rows) {
  CHECK(rows.rank() == 2 && rows.dim(1) == depth(), "rows ", rows.shape(), ", depth ", depth());
  for (int64_t first = 0; first < rows.dim(0); first += kStatisticsRows) {
    const int64_t count = std::min(kStatisticsRows, rows.dim(0) - first);
    const Tensor across(DType::f32, {depth(), count});
    for (int64_t row = 0; row < count; ++row)
      for (int64_t k = 0; k < depth(); ++k)
        across.view().row<float>(k)[row] = rows.row<float>(first + row)[k];
    linear(ctx, across, pack_matrix(ctx, across, {}, DType::f32), products_, {.accumulate = true});
  }
  rows_ += rows.dim(0);
}

CalibratedError calibrate_int8(Context& ctx, TensorView weight, const InputStatistics& inputs,
                               TensorView integers, TensorView scales) {
  check_statistics(weight, inputs);
  const Tensor own_integers(DType::i8, weight.shape()), own_scales(DType::f32, scales.shape());
  const StoredInt8 alone{own_integers, own_scales}, made{integers, scales};
  round_to_int8(*ctx.team, weight, alone.integers, alone.scales);
  return round_and_judge(ctx, weight, inputs, kColumnsOfInt8, alone, made,
                         [&](const Feedback&, int64_t first) { return Int8Chooser(made, alone, first); });
}

CalibratedError calibrate_int4(Context& ctx, TensorView weight, int64_t group, const InputStatistics& inputs,
                               const NibbleMatrix& to) {
  check_statistics(weight, inputs);
  const Tensor nibbles(DType::u8, to.nibbles.shape()), scales(DType::bf16, to.scales.shape()),
      minima(DType::bf16, to.minima.shape());
  const StoredInt4 alone{{nibbles, scales, minima}, weight.dim(1), group}, made{to, weight.dim(1), group};
  round_to_int4(*ctx.team, weight, group, alone.matrix);
  return round_and_judge(
      ctx, weight, inputs, group, alone, made,
      [&](const Feedback& feedback, int64_t first) { return Int4Chooser(made, feedback, first); });
}

}  // namespace shoal::ops
