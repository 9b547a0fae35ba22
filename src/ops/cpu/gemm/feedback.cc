#include "ops/cpu/gemm/feedback.h"

#include <cmath>

#include "ops/cpu/gemm/triangle.h"
#include "ops/weight_source.h"

namespace shoal::ops::cpu {
namespace {

constexpr double kDamping = 0.01;  // of the mean square of the inputs
constexpr int64_t kPassedOn = 64;  // columns: their sums stay in a cache

}  // namespace

Feedback::Feedback(ThreadTeam& team, TensorView products) : costs_(static_cast<size_t>(products.dim(0))) {
  const int64_t n = products.dim(0);
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += double{products.row<float>(i)[i]};
  if (!(squares > 0)) return;
  std::vector<double> factor;
  for (double damping = kDamping * squares / static_cast<double>(n); factor.empty(); damping *= 10)
    factor = upper_factor(team, products, damping);
  steps_.resize(factor.size());
  for (int64_t j = 0; j < n; ++j) {
    const double diagonal = factor[static_cast<size_t>(j * n + j)];
    costs_[static_cast<size_t>(j)] = diagonal * diagonal;
  }
  for (int64_t k = 0; k < n; ++k)
    for (int64_t j = k + 1; j < n; ++j)
      steps_[static_cast<size_t>(k * n + j)] =
          static_cast<float>(factor[static_cast<size_t>(k * n + j)] / factor[static_cast<size_t>(j * n + j)]);
}

void Feedback::importance(int64_t begin, std::span<float> shares) const {
  const std::span<const double> costs = std::span(costs_).subspan(static_cast<size_t>(begin), shares.size());
  double sum = 0;
  for (const double cost : costs) sum += cost;
  const double mean = sum / static_cast<double>(shares.size());
  for (size_t i = 0; i < shares.size(); ++i) shares[i] = static_cast<float>(costs[i] / mean);
}

void read_weights(TensorView weight, int64_t row, float* values, int64_t stride) {
  for (int64_t k = 0; k < weight.dim(1); ++k)
    values[k * stride] = load_float(weight.data(), weight.dtype(), row * weight.dim(1) + k);
}

FeedbackRows::FeedbackRows(const Feedback& feedback, TensorView weight, int64_t first)
    : feedback_(feedback),
      count_(static_cast<int>(std::min<int64_t>(Feedback::kRows, weight.dim(0) - first))),
      weights_(static_cast<size_t>(feedback.depth() * Feedback::kRows)),
      moved_(weights_.size()) {
  for (int row = 0; row < count_; ++row)
    read_weights(weight, first + row, weights_.data() + row, Feedback::kRows);
}

void FeedbackRows::find_targets(int row, int64_t begin, int64_t end, float* targets) {
  for (int64_t j = begin; j < end; ++j) targets[j - begin] = at(moved_, j)[row];
  for (int64_t k = begin; k < end; ++k) {
    const float* step = feedback_.step(k);
    const float moved = targets[k - begin];
    for (int64_t j = k + 1; j < end; ++j) targets[j - begin] -= moved * step[j];
    targets[k - begin] = at(weights_, k)[row] - moved;
  }
}

void FeedbackRows::pass_on(int64_t first, int64_t last, int64_t begin, int64_t end) {
  for (; begin < end; begin += kPassedOn) {
    const int64_t stop = std::min(end, begin + kPassedOn);
    for (int64_t k = first; k < last; ++k) {
      const float *moved = at(weights_, k), *step = feedback_.step(k);
      for (int64_t j = begin; j < stop; ++j) {
        float* to = at(moved_, j);
        for (int row = 0; row < Feedback::kRows; ++row) to[row] += moved[row] * step[j];
      }
    }
  }
}

}  // namespace shoal::ops::cpu
