// Rounding the weights of an output one after the other, each making good what rounding those before it has
// moved the output by (calibrated_weights.h). Compiled for the baseline: the same bits everywhere.
//
// With V V^T the sums of products of the inputs, V upper triangular, and d what rounding adds to an output's
// weights, the output's error is |d V|^2. Entry j of d V knows d up to j only; the value that makes it zero
// is w_j - (sum over k < j of d_k V_kj) / V_jj, and what rounding that adds costs V_jj^2. That is GPTQ: its
// factor of the inverse is the inverse of V.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_team.h"
#include "tensor/tensor.h"

namespace shoal::ops::cpu {

class Feedback {
 public:
  static constexpr int kRows = 16;  // outputs worked on together

  // products: f32 [n, n], symmetric and finite.
  Feedback(ThreadTeam& team, TensorView products);

  // Whether there is anything to make good by: not of zeros.
  bool useful() const { return !steps_.empty(); }
  int64_t depth() const { return static_cast<int64_t>(costs_.size()); }
  // V_kj / V_jj for j > k.
  const float* step(int64_t k) const { return steps_.data() + k * depth(); }
  // V_jj^2 of inputs from `begin` on, as shares of their mean.
  void importance(int64_t begin, std::span<float> shares) const;

 private:
  std::vector<float> steps_;   // [n, n]
  std::vector<double> costs_;  // V_jj^2
};

// Row `row` of a matrix of f32, bf16 or f16.
void read_weights(TensorView weight, int64_t row, float* values, int64_t stride);

// kRows outputs from `first` on, or what is left of them.
class FeedbackRows {
 public:
  FeedbackRows(const Feedback& feedback, TensorView weight, int64_t first);

  // Calls chooser.begin_group(row, begin, targets) when a group's turn comes, with what would be the best
  // values of its weights if they needed no rounding, and chooser.choose(row, column, target), which returns
  // the value that it takes.
  template <typename Chooser>
  void round(int64_t group, Chooser& chooser) {
    std::vector<float> targets(static_cast<size_t>(group));
    for (int64_t begin = 0; begin < feedback_.depth(); begin += group) {
      const int64_t end = std::min(feedback_.depth(), begin + group);
      for (int row = 0; row < count_; ++row) {
        find_targets(row, begin, end, targets.data());
        chooser.begin_group(row, begin, std::span(targets).first(static_cast<size_t>(end - begin)));
      }
      for (int64_t column = begin; column < end; ++column) {
        float* weights = at(weights_, column);
        const float* moved = at(moved_, column);
        for (int row = 0; row < count_; ++row)
          weights[row] = chooser.choose(row, column, weights[row] - moved[row]) - weights[row];
        pass_on(column, column + 1, column + 1, end);
      }
      pass_on(begin, end, end, feedback_.depth());
    }
  }

 private:
  static float* at(std::vector<float>& values, int64_t column) {
    return values.data() + column * Feedback::kRows;
  }
  void find_targets(int row, int64_t begin, int64_t end, float* targets);
  // What rounding weights [first, last) moved, told to [begin, end).
  void pass_on(int64_t first, int64_t last, int64_t begin, int64_t end);

  const Feedback& feedback_;
  int count_;
  // [depth, kRows]. weights_: d of those that are rounded; moved_: the sums that targets lack.
  std::vector<float> weights_, moved_;
};

}  // namespace shoal::ops::cpu
