#include "ops/norm.h"

#include <cmath>

#include "ops/conv1d.h"
#include "ops/rows_testing.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

constexpr int64_t kNormDims[] = {1, 2, 3, 12, 15, 40, 64, 100, 127, 128, 1024, 1030, 2560};

class NormTest : public RowsTestOf<OpTest> {
 protected:
  int64_t most_elements() const { return on_gpu() ? 1'100'000 : 50'000; }

  // Roundings of a root mean square, its division and the products after it. CPUs: squares are a chain of
  // dim / 64 and two trees, halved by the root. GPU: a lane adds up dim / 128 squares, four accumulators and
  // the warp another 7 sums; the root halves that error too.
  double rms_roundings(int64_t dim) const {
    const auto terms = static_cast<double>(dim);
    return on_gpu() ? (terms / 128 + 1 + 7) / 2 + 6 : terms / 128 + 10;
  }
  double chain_of_sums(int64_t dim) const {
    const auto terms = static_cast<double>(dim);
    return on_gpu() ? terms / 128 + 9 : terms / 64 + 8;
  }
  // Of sin^2 beside the rounding of the phase: on a GPU the sine is good to 3 units (its polynomial, the
  // reduction, the last sum), its square to 7, and 1 / (alpha + 1e-9) adds 2.
  double sine_error() const { return on_gpu() ? 10 * kUnit : 1.5e-7 + 4 * kUnit; }

  // op(x, y) with rows of every surroundings, into others and in place.
  template <typename Op>
  void expect_rows(const std::vector<float>& values, int64_t rows, int64_t dim, const ref::Values& want,
                   const ref::Values& bound, Op op) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << dim);
    for (const auto& [skip, gap] : kSurroundings) {
      const Strided x = strided(values, rows, dim, skip, gap), y = strided(values, rows, dim, gap, skip);
      op(x.view, y.view);
      expect_close(get(y.view), want, bound);
      expect_gaps_untouched(y);
      op(x.view, x.view);
      expect_same_bits(get(x.view), get(y.view));
      expect_gaps_untouched(x);
    }
  }

  // One row's wanted values and their bounds, appended.
  void add_layer_norm(const ref::Values& x, const std::vector<float>& weight, const std::vector<float>& bias,
                      ref::Values& want, ref::Values& bound) const {
    const auto dim = static_cast<double>(x.size());
    const ref::Values result = ref::layer_norm(x, wide(weight), wide(bias), 1e-6f);
    const ref::Values normal =
        ref::layer_norm(x, ref::Values(x.size(), 1.0), ref::Values(x.size(), 0.0), 1e-6f);
    double mean = 0, size = 0, variance = 0;
    for (const double v : x) mean += v / dim, size += std::abs(v) / dim;
    for (const double v : x) variance += (v - mean) * (v - mean) / dim;
    const double scale = 1 / std::sqrt(variance + 1e-6), chain = chain_of_sums(std::ssize(x));
    for (size_t i = 0; i < x.size(); ++i) {
      want.push_back(result[i]);
      // the mean's own error shifts every element; the variance's scales it; then the roundings of the
      // formula
      bound.push_back(kUnit * (std::abs(weight[i]) * scale * (chain * size + 2 * std::abs(x[i])) +
                               (chain / 2 + 10) * std::abs(weight[i] * normal[i]) + 2 * std::abs(result[i])) +
                      1e-12 * scale);
    }
  }
};

TEST_P(NormTest, RmsMatchesTheOracleInPlaceAndStrided) {
  for (const int64_t dim : kNormDims)
    for (const int64_t rows : {0, 1, 3, 17, 1025}) {
      if (dim * rows > most_elements()) continue;
      const std::vector<float> values = random_values(rows * dim, 1, 2), weight = random_values(dim, 2);
      ref::Values want, bound;
      for (int64_t row = 0; row < rows; ++row)
        for (const double v : ref::rms_norm(values_of_row(values, row, dim), wide(weight), 1e-5f)) {
          want.push_back(v);
          bound.push_back(rms_roundings(dim) * kUnit * std::abs(v) + 1e-37);
        }
      const Tensor w = put(weight, {dim});
      if (rows == 0) {
        rms_norm(ctx(), garbage({0, dim}), w, 1e-5f, garbage({0, dim}));
        continue;
      }
      expect_rows(values, rows, dim, want, bound,
                  [&](TensorView x, TensorView y) { rms_norm(ctx(), x, w, 1e-5f, y); });
    }
}

TEST_P(NormTest, LayerNormMatchesTheOracle) {
  constexpr int64_t kRows = 5;
  for (const int64_t dim : kNormDims) {
    if (dim == 1) continue;  // its variance is 0: all is eps
    std::vector<float> values = random_values(kRows * dim, 1, 2);
    for (float& v : values) v += 3;  // a mean to get rid of
    const std::vector<float> weight = random_values(dim, 2), bias = random_values(dim, 3);
    ref::Values want, bound;
    for (int64_t row = 0; row < kRows; ++row)
      add_layer_norm(values_of_row(values, row, dim), weight, bias, want, bound);
    const Tensor w = put(weight, {dim}), b = put(bias, {dim});
    expect_rows(values, kRows, dim, want, bound,
                [&](TensorView x, TensorView y) { layer_norm(ctx(), x, w, b, 1e-6f, y); });
  }
}

TEST_P(NormTest, ARowsNormDependsOnThatRowAlone) {
  constexpr int64_t kRows = 1300, kDim = 300;
  const Tensor x = put(random_values(kRows * kDim, 3), {kRows, kDim}),
               w = put(random_values(kDim, 4), {kDim});
  const Tensor y = garbage({kRows, kDim}), one = garbage({1, kDim});
  rms_norm(ctx(), x, w, 1e-6f, y);
  const std::vector<float> rms = get(y);
  layer_norm(ctx(), x, w, w, 1e-6f, y);
  const std::vector<float> layer = get(y);
  for (const int64_t row : {int64_t{0}, int64_t{7}, kRows - 1}) {
    const auto slice = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin() + row * kDim, all.begin() + (row + 1) * kDim);
    };
    rms_norm(ctx(), x.view().slice(row, row + 1), w, 1e-6f, one);
    expect_same_bits(get(one), slice(rms));
    layer_norm(ctx(), x.view().slice(row, row + 1), w, w, 1e-6f, one);
    expect_same_bits(get(one), slice(layer));
  }
}

TEST_P(NormTest, EachRowUsesTheWeightsAtItsTableIndex) {
  constexpr int64_t kRows = 40, kEntries = 3;
  for (const int64_t dim : {30, 512}) {
    const Tensor x = put(random_values(kRows * dim, 1, 2), {kRows, dim}), y = garbage({kRows, dim});
    const Tensor table = put(random_values(kEntries * 2 * dim, 2), {kEntries, 2 * dim});
    const TensorView weights = table.view().columns(0, dim), biases = table.view().columns(dim, 2 * dim);
    std::vector<int32_t> which(kRows);
    for (size_t row = 0; row < which.size(); ++row) which[row] = static_cast<int32_t>(row * row % kEntries);
    const Tensor ids = put(which, {kRows}), one = garbage({1, dim});
    layer_norm_by_row(ctx(), x, ids, weights, biases, 1e-6f, y);
    const std::vector<float> got = get(y);
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t own = which[static_cast<size_t>(row)];
      layer_norm(ctx(), x.view().slice(row, row + 1), weights.slice(own, own + 1).reshape({dim}),
                 biases.slice(own, own + 1).reshape({dim}), 1e-6f, one);
      expect_same_bits(get(one), {got.begin() + row * dim, got.begin() + (row + 1) * dim});
    }
    layer_norm_by_row(ctx(), x, ids, weights, biases, 1e-6f, x);  // in place
    expect_same_bits(get(x), got);
  }
}

TEST_P(NormTest, SnakeMatchesTheOracle) {
  for (const int64_t channels : {1, 3, 12, 96, 100, 1030})
    for (const int64_t rows : {0, 1, 5, 77, 700}) {
      if (channels * rows > most_elements()) continue;
      std::vector<float> values = random_values(rows * channels, 1, 3), alpha = random_values(channels, 2);
      for (float& a : alpha) a = std::abs(a) + 0.1f;
      const Tensor a = put(alpha, {channels});
      if (rows == 0) {
        snake(ctx(), garbage({0, channels}), a, garbage({0, channels}));
        continue;
      }
      values[0] = 1e4f;  // many turns
      ref::Values want, bound;
      for (size_t i = 0; i < values.size(); ++i) {
        const double own = alpha[i % alpha.size()];
        want.push_back(ref::snake(values[i], own));
        // the phase alpha x is rounded: an error of u |alpha x| in the argument of sin^2
        bound.push_back(kUnit * (2 * std::abs(want.back()) + std::abs(values[i])) + sine_error() / own);
      }
      expect_rows(values, rows, channels, want, bound,
                  [&](TensorView x, TensorView y) { snake(ctx(), x, a, y); });
    }
}

TEST_P(NormTest, WrongShapesAreRefused) {
  const Tensor three_by_four = garbage({3, 4}), four_by_three = garbage({4, 3}), w = garbage({3});
  EXPECT_THROW(rms_norm(ctx(), three_by_four, w, 1e-6f, garbage({3, 4})), Error);
  EXPECT_THROW(rms_norm(ctx(), four_by_three, w, 1e-6f, three_by_four), Error);
  EXPECT_THROW(layer_norm(ctx(), four_by_three, w, {}, 1e-6f, garbage({4, 3})), Error);
  EXPECT_THROW(snake(ctx(), three_by_four, w, garbage({3, 4})), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, NormTest, testing::ValuesIn(every_machine()), name_of_machine);

// A GPU reads the nearest row (cuda/rows/rows_test.cc).
class NormOnCpus : public OpTest {};

TEST_P(NormOnCpus, IndicesOutsideTheTableAreErrors) {
  const Tensor x = garbage({9, 4}), table = garbage({3, 8});
  for (const int32_t outside : {-1, 3}) {
    std::vector<int32_t> which(9);
    which[7] = outside;
    EXPECT_THROW(layer_norm_by_row(ctx(), x, put(which, {9}), table.view().columns(0, 4),
                                   table.view().columns(4, 8), 1e-6f, x),
                 Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, NormOnCpus, testing::ValuesIn(every_cpu()), name_of_machine);

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
