#include "ops/norm.h"

#include <cmath>

#include "ops/conv1d.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

class NormTest : public IsaTest {};

double magnitude(const ref::Values& x) {
  double sum = 0;
  for (const double v : x) sum += std::abs(v);
  return sum / static_cast<double>(x.size());
}

TEST_P(NormTest, RmsMatchesTheOracleInPlaceAndStrided) {
  for (const int64_t dim : {1, 2, 15, 64, 100, 1024, 1030})
    for (const int64_t rows : {0, 1, 3, 17}) {
      std::vector<float> all = random_values(rows * (dim + 3), 1, 2), weight = random_values(dim, 2);
      const TensorView x = view_of(all, {rows, dim + 3}).columns(1, dim + 1);
      ref::Values want, bound;
      for (int64_t row = 0; row < rows; ++row) {
        const float* values = x.row<float>(row);
        for (const double v : ref::rms_norm({values, values + dim}, wide(weight), 1e-5f)) {
          want.push_back(v);
          // squares: a chain of dim / 64 and two trees, halved by the root; three products and the root
          bound.push_back((static_cast<double>(dim) / 128 + 10) * kUnit * std::abs(v) + 1e-37);
        }
      }
      rms_norm(ctx_, x, view_of(weight, {dim}), 1e-5f, x);
      std::vector<float> got;
      for (int64_t row = 0; row < rows; ++row)
        got.insert(got.end(), x.row<float>(row), x.row<float>(row) + dim);
      expect_close(got, want, bound);
    }
}

TEST_P(NormTest, LayerNormMatchesTheOracle) {
  for (const int64_t dim : {2, 15, 64, 100, 1024, 1030}) {
    constexpr int64_t kRows = 5;
    std::vector<float> x = random_values(kRows * dim, 1, 2), y(x.size());
    for (float& v : x) v += 3;  // a mean to get rid of
    std::vector<float> weight = random_values(dim, 2), bias = random_values(dim, 3);
    layer_norm(ctx_, view_of(x, {kRows, dim}), view_of(weight, {dim}), view_of(bias, {dim}), 1e-6f,
               view_of(y, {kRows, dim}));
    ref::Values want, bound;
    for (int64_t row = 0; row < kRows; ++row) {
      const ref::Values values = slice(wide(x), row * dim, dim);
      const ref::Values result = ref::layer_norm(values, wide(weight), wide(bias), 1e-6f);
      const ref::Values flat(static_cast<size_t>(dim), 1.0), zero(static_cast<size_t>(dim), 0.0);
      const ref::Values normal = ref::layer_norm(values, flat, zero, 1e-6f);
      double spread = 0, mean = 0;
      for (const double v : values) mean += v / static_cast<double>(dim);
      for (const double v : values) spread += (v - mean) * (v - mean) / static_cast<double>(dim);
      const double scale = 1 / std::sqrt(spread + 1e-6), chain = static_cast<double>(dim) / 64 + 8;
      for (size_t i = 0; i < result.size(); ++i) {
        want.push_back(result[i]);
        // the mean's own error shifts every element; the variance scales it; then the roundings of the
        // formula
        bound.push_back(
            kUnit * (std::abs(weight[i]) * scale * (chain * magnitude(values) + 2 * std::abs(values[i])) +
                     (chain / 2 + 10) * std::abs(weight[i] * normal[i]) + 2 * std::abs(result[i])) +
            1e-12 * scale);
      }
    }
    expect_close(y, want, bound);
  }
}

TEST_P(NormTest, EachRowUsesTheWeightsAtItsTableIndex) {
  constexpr int64_t kRows = 40, kDim = 30, kEntries = 3;
  std::vector<float> x = random_values(kRows * kDim, 1, 2), table = random_values(kEntries * 2 * kDim, 2);
  std::vector<int32_t> which(kRows);
  for (size_t row = 0; row < which.size(); ++row) which[row] = static_cast<int32_t>(row * row % kEntries);
  const TensorView rows = view_of(x, {kRows, kDim}), both = view_of(table, {kEntries, 2 * kDim});
  const TensorView weights = both.columns(0, kDim), biases = both.columns(kDim, 2 * kDim);
  std::vector<float> want(x.size()), got(x.size());
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t own = which[static_cast<size_t>(row)];
    layer_norm(ctx_, rows.slice(row, row + 1), weights.slice(own, own + 1).reshape({kDim}),
               biases.slice(own, own + 1).reshape({kDim}), 1e-6f,
               view_of(want, {kRows, kDim}).slice(row, row + 1));
  }
  const auto ids = [&] { return TensorView::of(which.data(), DType::i32, {kRows}); };
  layer_norm_by_row(ctx_, rows, ids(), weights, biases, 1e-6f, view_of(got, {kRows, kDim}));
  EXPECT_EQ(got, want);
  layer_norm_by_row(ctx_, rows, ids(), weights, biases, 1e-6f, rows);  // in place
  EXPECT_EQ(x, want);
  for (const int32_t outside : {-1, static_cast<int32_t>(kEntries)}) {
    which[7] = outside;
    EXPECT_THROW(layer_norm_by_row(ctx_, rows, ids(), weights, biases, 1e-6f, rows), Error);
  }
}

TEST_P(NormTest, SnakeRunsInPlaceOverRows) {
  for (const int64_t rows : {0, 1, 77}) {
    std::vector<float> x = random_values(rows * 100, 1), alpha = random_values(100, 2);
    for (float& a : alpha) a = std::abs(a) + 0.1f;
    ref::Values want, bound;
    for (size_t i = 0; i < x.size(); ++i) {
      want.push_back(ref::snake(x[i], alpha[i % 100]));
      // the phase alpha x is rounded: an error of u |alpha x| in the argument of sin^2
      bound.push_back(kUnit * (2 * std::abs(want.back()) + std::abs(x[i])) +
                      (1.5e-7 + 4 * kUnit) / alpha[i % 100]);
    }
    snake(ctx_, view_of(x, {rows, 100}), view_of(alpha, {100}), view_of(x, {rows, 100}));
    expect_close(x, want, bound);
  }
}

TEST_P(NormTest, WrongShapesAreRefused) {
  std::vector<float> x(12), y(12), w(3);
  EXPECT_THROW(rms_norm(ctx_, view_of(x, {3, 4}), view_of(w, {3}), 1e-6f, view_of(y, {3, 4})), Error);
  EXPECT_THROW(rms_norm(ctx_, view_of(x, {4, 3}), view_of(w, {3}), 1e-6f, view_of(y, {3, 4})), Error);
  EXPECT_THROW(layer_norm(ctx_, view_of(x, {4, 3}), view_of(w, {3}), {}, 1e-6f, view_of(y, {4, 3})), Error);
  EXPECT_THROW(snake(ctx_, view_of(x, {3, 4}), view_of(w, {3}), view_of(y, {3, 4})), Error);
}

INSTANTIATE_TEST_SUITE_P(Isa, NormTest, every_isa(), name_of_isa);

TEST(NoCuda, OpsReportThatTheBackendIsUnavailable) {
  ThreadTeam team(1);
  Workspace workspace;
  Context ctx{.device = {DeviceKind::cuda, 0}, .team = &team, .workspace = &workspace, .stream = nullptr};
  std::vector<float> x(4), w(2);
  try {
    rms_norm(ctx, view_of(x, {2, 2}), view_of(w, {2}), 1e-6f, view_of(x, {2, 2}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
}

}  // namespace
}  // namespace shoal::ops
