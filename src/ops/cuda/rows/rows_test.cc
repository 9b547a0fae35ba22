#include <algorithm>
#include <cmath>

#include "base/f16.h"
#include "ops/conv1d.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/embedding.h"
#include "ops/matrix_testing.h"
#include "ops/norm.h"
#include "ops/ref/vector.h"
#include "ops/vector_quantise.h"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kDims[] = {1, 2, 3, 12, 40, 127, 128, 1024, 1030, 2560};

class RowsTest : public CudaTest {
 protected:
  // `rows` rows of dim values, `gap` columns apart, the first `skip` into the memory.
  struct Strided {
    Tensor memory;
    TensorView view;
  };
  Strided strided(std::span<const float> values, int64_t rows, int64_t dim, int64_t skip, int64_t gap) {
    const int64_t width = skip + dim + gap;
    std::vector<float> all(static_cast<size_t>(rows * width), -77.0f);
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(values.data() + row * dim, dim, all.data() + row * width + skip);
    Strided result{put(all, {rows, width}), {}};
    result.view = result.memory.view().columns(skip, skip + dim);
    return result;
  }
  // Whether only the view was written.
  void expect_gaps_untouched(const Strided& rows) {
    const std::vector<float> all = get(rows.memory);
    const std::vector<float> inside = get(rows.view);
    const auto untouched = std::count(all.begin(), all.end(), -77.0f);
    EXPECT_EQ(untouched, static_cast<int64_t>(all.size() - inside.size()));
  }
};

ref::Values row_of(const std::vector<float>& values, int64_t row, int64_t dim) {
  return {values.begin() + row * dim, values.begin() + (row + 1) * dim};
}

// A lane adds up dim / 128 squares, four accumulators and the warp another 7 sums; the root halves that
// error; then division, sum, root, division and two products.
double rms_roundings(int64_t dim) { return (static_cast<double>(dim) / 128 + 1 + 7) / 2 + 6; }

TEST_F(RowsTest, RmsNormMatchesTheOracle) {
  for (const int64_t dim : kDims)
    for (const int64_t rows : {1, 3, 1025}) {
      if (dim * rows > 1'100'000) continue;
      const std::vector<float> values = random_values(rows * dim, 1, 2), weight = random_values(dim, 2);
      ref::Values want, bound;
      for (int64_t row = 0; row < rows; ++row)
        for (const double v : ref::rms_norm(row_of(values, row, dim), wide(weight), 1e-5f)) {
          want.push_back(v);
          bound.push_back(rms_roundings(dim) * kUnit * std::abs(v) + 1e-37);
        }
      const Tensor w = put(weight, {dim});
      for (const auto& [skip, gap] : {std::pair<int64_t, int64_t>{0, 0}, {4, 4}, {1, 2}}) {
        const Strided x = strided(values, rows, dim, skip, gap), y = strided(values, rows, dim, gap, skip);
        rms_norm(ctx(), x.view, w, 1e-5f, y.view);
        expect_close(get(y.view), want, bound);
        expect_gaps_untouched(y);
        rms_norm(ctx(), x.view, w, 1e-5f, x.view);
        expect_same_bits(get(x.view), get(y.view));
      }
    }
}

TEST_F(RowsTest, ARowsNormDependsOnThatRowAlone) {
  constexpr int64_t kRows = 1300, kDim = 300;
  const std::vector<float> values = random_values(kRows * kDim, 3);
  const Tensor x = put(values, {kRows, kDim}), w = put(random_values(kDim, 4), {kDim});
  const Tensor y(DType::f32, {kRows, kDim}, kDevice), one(DType::f32, {1, kDim}, kDevice);
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

TEST_F(RowsTest, LayerNormMatchesTheOracle) {
  constexpr int64_t kRows = 5;
  for (const int64_t dim : kDims) {
    if (dim == 1) continue;  // its variance is 0: all is eps
    std::vector<float> values = random_values(kRows * dim, 1, 2);
    for (float& v : values) v += 3;  // a mean to get rid of
    const std::vector<float> weight = random_values(dim, 2), bias = random_values(dim, 3);
    ref::Values want, bound;
    for (int64_t row = 0; row < kRows; ++row) {
      const ref::Values x = row_of(values, row, dim);
      const ref::Values ones(static_cast<size_t>(dim), 1.0), zeros(static_cast<size_t>(dim), 0.0);
      const ref::Values result = ref::layer_norm(x, wide(weight), wide(bias), 1e-6f);
      const ref::Values normal = ref::layer_norm(x, ones, zeros, 1e-6f);
      double mean = 0, size = 0, variance = 0;
      for (const double v : x)
        mean += v / static_cast<double>(dim), size += std::abs(v) / static_cast<double>(dim);
      for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(dim);
      const double scale = 1 / std::sqrt(variance + 1e-6), chain = static_cast<double>(dim) / 128 + 9;
      for (size_t i = 0; i < result.size(); ++i) {
        want.push_back(result[i]);
        // the mean's own error shifts every element; the variance's scales it; then the roundings of the
        // formula
        bound.push_back(kUnit *
                            (std::abs(weight[i]) * scale * (chain * size + 2 * std::abs(x[i])) +
                             (chain / 2 + 10) * std::abs(weight[i] * normal[i]) + 2 * std::abs(result[i])) +
                        1e-12 * scale);
      }
    }
    const Tensor w = put(weight, {dim}), b = put(bias, {dim});
    for (const auto& [skip, gap] : {std::pair<int64_t, int64_t>{0, 0}, {4, 4}, {3, 0}}) {
      const Strided x = strided(values, kRows, dim, skip, gap), y = strided(values, kRows, dim, gap, skip);
      layer_norm(ctx(), x.view, w, b, 1e-6f, y.view);
      expect_close(get(y.view), want, bound);
      expect_gaps_untouched(y);
      layer_norm(ctx(), x.view, w, b, 1e-6f, x.view);
      expect_same_bits(get(x.view), get(y.view));
    }
  }
}

TEST_F(RowsTest, EachRowUsesTheWeightsAtItsTableIndex) {
  constexpr int64_t kRows = 40, kEntries = 3;
  for (const int64_t dim : {30, 512}) {
    const Tensor x = put(random_values(kRows * dim, 1, 2), {kRows, dim}),
                 y(DType::f32, {kRows, dim}, kDevice);
    const Tensor table = put(random_values(kEntries * 2 * dim, 2), {kEntries, 2 * dim});
    const TensorView weights = table.view().columns(0, dim), biases = table.view().columns(dim, 2 * dim);
    std::vector<int32_t> which(kRows);
    for (size_t row = 0; row < which.size(); ++row) which[row] = static_cast<int32_t>(row * row % kEntries);
    which[5] = -1, which[6] = kEntries;  // the nearest row
    layer_norm_by_row(ctx(), x, put(which, {kRows}), weights, biases, 1e-6f, y);
    const std::vector<float> got = get(y);
    const Tensor one(DType::f32, {1, dim}, kDevice);
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t own = std::clamp<int64_t>(which[static_cast<size_t>(row)], 0, kEntries - 1);
      layer_norm(ctx(), x.view().slice(row, row + 1), weights.slice(own, own + 1).reshape({dim}),
                 biases.slice(own, own + 1).reshape({dim}), 1e-6f, one);
      expect_same_bits(get(one), {got.begin() + row * dim, got.begin() + (row + 1) * dim});
    }
  }
}

TEST_F(RowsTest, SnakeMatchesTheOracle) {
  for (const int64_t channels : {1, 3, 12, 96, 1030})
    for (const int64_t rows : {1, 5, 700}) {
      std::vector<float> values = random_values(rows * channels, 1, 3), alpha = random_values(channels, 2);
      for (float& a : alpha) a = std::abs(a) + 0.1f;
      values[0] = 1e4f;  // many turns
      ref::Values want, bound;
      for (size_t i = 0; i < values.size(); ++i) {
        const double a = alpha[i % static_cast<size_t>(channels)], phase = std::abs(a * values[i]);
        want.push_back(ref::snake(values[i], a));
        // The phase is rounded, and sin^2 changes by no more than it does; the sine itself is good to 3 units
        // (its polynomial, the reduction, the last sum), its square to 7, and 1 / (alpha + 1e-9) adds 2.
        bound.push_back(kUnit * (2 * std::abs(want.back()) + (phase + 10) / a));
      }
      const Tensor a = put(alpha, {channels});
      for (const auto& [skip, gap] : {std::pair<int64_t, int64_t>{0, 0}, {4, 4}, {1, 2}}) {
        const Strided x = strided(values, rows, channels, skip, gap),
                      y = strided(values, rows, channels, gap, skip);
        snake(ctx(), x.view, a, y.view);
        expect_close(get(y.view), want, bound);
        expect_gaps_untouched(y);
        snake(ctx(), x.view, a, x.view);
        expect_same_bits(get(x.view), get(y.view));
      }
    }
}

// The same op on the host: the GPU must equal it bit for bit.
class LookUpTest : public RowsTest {
 protected:
  struct Table {
    Tensor here, there;
  };
  Table table(DType dtype, int64_t entries, int64_t dim, unsigned seed) {
    const std::vector<float> values = random_values(entries * dim, seed);
    Table result{Tensor(dtype, {entries, dim}), put(values, {entries, dim}, dtype)};
    for (size_t i = 0; i < values.size(); ++i) {
      if (dtype == DType::f32) result.here.as<float>()[i] = values[i];
      if (dtype == DType::bf16) result.here.as<Bf16>()[i] = float_to_bf16(values[i]);
      if (dtype == DType::f16) result.here.as<F16>()[i] = float_to_f16(values[i]);
    }
    return result;
  }
  static TensorView view(const std::vector<int32_t>& ids, Shape shape) {
    return TensorView::of(ids.data(), DType::i32, shape);
  }
};

TEST_F(LookUpTest, RowsAndSumsEqualTheCpu) {
  constexpr int64_t kRows = 19, kPerRow = 10, kEntries = 50;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kRows * kPerRow; ++i) ids.push_back(i * 7 % kEntries);
  const Tensor device_ids = put(ids, {kRows, kPerRow});
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const int64_t dim : {1, 7, 8, 40, 1024, 1032, 2061}) {
      const Table t = table(dtype, kEntries, dim, 2);
      std::vector<float> want(kRows * static_cast<size_t>(dim));
      const Strided y = strided(want, kRows, dim, 4, 4), odd = strided(want, kRows, dim, 1, 2);
      const auto expect_rows = [&] {
        expect_same_bits(get(y.view), want);
        expect_same_bits(get(odd.view), want);
        expect_gaps_untouched(y);
        expect_gaps_untouched(odd);
      };
      gather_rows(host_ctx(), t.here, view(ids, {kRows, kPerRow}), view_of(want, {kRows, dim}));
      gather_rows(ctx(), t.there, device_ids, y.view);
      gather_rows(ctx(), t.there, device_ids, odd.view);
      expect_rows();
      for (const int64_t first : {0, 1, 9}) {  // ten, nine and one in each row
        const TensorView some = view(ids, {kRows, kPerRow}).columns(first, kPerRow);
        gather_sum(host_ctx(), t.here, some, view_of(want, {kRows, dim}));
        gather_sum(ctx(), t.there, device_ids.view().columns(first, kPerRow), y.view);
        gather_sum(ctx(), t.there, device_ids.view().columns(first, kPerRow), odd.view);
        expect_rows();
      }
    }
}

TEST_F(LookUpTest, TablesMayBeStrided) {
  const std::vector<float> values = random_values(9 * 20, 1);
  const Tensor t = put(values, {9, 20});
  const std::vector<int32_t> ids = {8, 0, 5};
  const Tensor y(DType::f32, {3, 13}, kDevice);
  gather_rows(ctx(), t.view().columns(4, 17), put(ids, {3}), y);
  std::vector<float> want;
  for (const int32_t id : ids)
    want.insert(want.end(), values.begin() + id * 20 + 4, values.begin() + id * 20 + 17);
  expect_same_bits(get(y), want);
}

TEST_F(LookUpTest, IdsOutsideATableReadTheNearestRow) {
  const std::vector<float> values = random_values(4 * 3, 1);
  const std::vector<int32_t> ids = {-1, 4, std::numeric_limits<int32_t>::min(),
                                    std::numeric_limits<int32_t>::max()};
  const Tensor y(DType::f32, {4, 3}, kDevice);
  gather_rows(ctx(), put(values, {4, 3}), put(ids, {4}), y);
  const std::vector<float> got = get(y);
  for (int row = 0; row < 4; ++row)
    for (int d = 0; d < 3; ++d) EXPECT_EQ(got[row * 3 + d], values[(row % 2 == 0 ? 0 : 9) + d]);
}

TEST_F(LookUpTest, ColumnsAreEmbeddedAsOnTheCpu) {
  constexpr int64_t kCodebooks = 10, kSize = 5, kRows = 5;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const int64_t dim : {1, 12, 33, 1024, 1040})
      for (const bool scale : {false, true}) {
        const Table text = table(dtype, 20, dim, 3), codes = table(dtype, kCodebooks * kSize, dim, 4);
        ColumnEmbedding embedding{text.here, codes.here, kSize, kCodebooks, 10, 14, scale};
        std::vector<int32_t> columns;
        for (const int32_t token : {9, 10, 14, 15, 12}) {
          columns.push_back(token);
          for (int32_t i = 0; i < kCodebooks; ++i) columns.push_back((i * 3 + token) % 5);
        }
        std::vector<float> want(kRows * static_cast<size_t>(dim));
        embed_columns(host_ctx(), embedding, view(columns, {kRows, 1 + kCodebooks}),
                      view_of(want, {kRows, dim}));
        embedding.text = text.there, embedding.codebooks = codes.there;
        const Strided y = strided(want, kRows, dim, 0, 0), odd = strided(want, kRows, dim, 3, 1);
        const Tensor ids = put(columns, {kRows, 1 + kCodebooks});
        embed_columns(ctx(), embedding, ids, y.view);
        embed_columns(ctx(), embedding, ids, odd.view);
        expect_same_bits(get(y.view), want);
        expect_same_bits(get(odd.view), want);
        expect_gaps_untouched(odd);
      }
}

TEST_F(LookUpTest, CodesOutsideACodebookReadItsNearestRow) {
  const Tensor text = put(std::vector<float>{100}, {1, 1}),
               codes = put(std::vector<float>{1, 2, 3, 10, 20, 30}, {6, 1});
  const ColumnEmbedding embedding{text, codes, 3, 2, 0, 0, false};
  const Tensor y(DType::f32, {2, 1}, kDevice);
  embed_columns(ctx(), embedding, put(std::vector<int32_t>{0, -1, 7, 0, 3, -5}, {2, 3}), y);
  EXPECT_EQ(get(y), (std::vector<float>{131, 113}));
}

TEST_F(LookUpTest, NearestCodesEqualTheCpu) {
  for (const int64_t entries : {1, 5, 255, 1024, 4099})
    for (const int64_t dim : {1, 2, 8, 19, 64})
      for (const int64_t rows : {1, 8, 77}) {
        std::vector<float> x = random_values(rows * dim, 1, 3), directions = random_values(entries * dim, 2);
        for (int64_t e = 2; e < entries; e += 3)  // doubles of earlier entries: ties
          std::copy_n(directions.begin() + (e - 2) * dim, dim, directions.begin() + e * dim);
        std::fill_n(x.begin() + (rows - 1) * dim, dim, 0.0f);  // ties with everything
        if (rows > 2) x[static_cast<size_t>(dim)] = std::numeric_limits<float>::quiet_NaN();
        std::vector<int32_t> want(static_cast<size_t>(rows));
        nearest_code(host_ctx(), view_of(x, {rows, dim}), view_of(directions, {entries, dim}),
                     view(want, {rows}));
        const Tensor codes = put(std::vector<int32_t>(static_cast<size_t>(3 * rows), 77), {rows, 3});
        const Strided device_x = strided(x, rows, dim, 1, 2);
        nearest_code(ctx(), device_x.view, put(directions, {entries, dim}), codes.view().columns(1, 3));
        EXPECT_EQ(get_ints(codes.view().columns(1, 2)), want) << entries << " x " << dim;
        EXPECT_EQ(get_ints(codes.view().columns(2, 3)), std::vector<int32_t>(static_cast<size_t>(rows), 77));
      }
}

}  // namespace
}  // namespace shoal::ops::cuda
