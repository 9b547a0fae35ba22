// Shared by the tests of LSTMs on every device.
#pragma once

#include "ops/lstm.h"
#include "ops/ref/sequence.h"
#include "ops/sequence_testing.h"

namespace shoal::ops::lstm_testing {

// Weights of one direction and their owner.
struct Direction {
  int64_t inputs, hidden;
  std::vector<float> weight_ih, weight_hh, bias_ih, bias_hh;

  Direction(int64_t in, int64_t units, unsigned seed) : inputs(in), hidden(units) {
    const auto scale = [](int64_t depth) { return 1.0f / std::sqrt(static_cast<float>(depth)); };
    weight_ih = random_values(4 * units * in, seed, scale(in));
    weight_hh = random_values(4 * units * units, seed + 1, 0.5f * scale(units));
    bias_ih = random_values(4 * units, seed + 2, 0.5f);
    bias_hh = random_values(4 * units, seed + 3, 0.5f);
  }
  LstmDirection view() {
    return {view_of(weight_ih, {4 * hidden, inputs}), view_of(weight_hh, {4 * hidden, hidden}),
            view_of(bias_ih, {4 * hidden}), view_of(bias_hh, {4 * hidden})};
  }
  ref::Lstm oracle(DType dtype = DType::f32) const {
    ref::Lstm lstm{inputs, hidden, rounded(weight_ih, dtype), wide(weight_hh), wide(bias_ih)};
    for (size_t i = 0; i < bias_hh.size(); ++i) lstm.bias[i] += bias_hh[i];
    return lstm;
  }
};

inline std::vector<std::vector<float>> random_rows(const std::vector<int32_t>& lengths, int64_t width) {
  std::vector<std::vector<float>> rows;
  for (const int32_t length : lengths)
    rows.push_back(random_values(length * width, static_cast<unsigned>(7 + length)));
  return rows;
}

// The rows in the opposite order.
template <typename T>
std::vector<T> turned(const std::vector<T>& rows, int64_t width) {
  std::vector<T> other;
  for (auto row = rows.end(); row != rows.begin(); row -= width) other.insert(other.end(), row - width, row);
  return other;
}

// Columns [begin, end) of rows of `width`.
inline std::vector<float> columns(const std::vector<float>& rows, int64_t width, int64_t begin, int64_t end) {
  std::vector<float> some;
  for (auto row = rows.begin(); row != rows.end(); row += width)
    some.insert(some.end(), row + begin, row + end);
  return some;
}

}  // namespace shoal::ops::lstm_testing
