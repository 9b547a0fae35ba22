#include <algorithm>
#include <cmath>

#include "base/f16.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/embedding.h"
#include "ops/matrix_testing.h"
#include "ops/norm.h"
#include "ops/rows_testing.h"
#include "ops/vector_quantise.h"

namespace shoal::ops::cuda {
namespace {

using RowsTest = RowsTestOf<CudaTest>;

TEST_F(RowsTest, ATableIndexOutsideUsesTheNearestWeights) {
  constexpr int64_t kEntries = 3;
  for (const int64_t dim : {30, 512}) {
    const Tensor x = put(random_values(3 * dim, 1, 2), {3, dim}), y = garbage({3, dim});
    const Tensor table = put(random_values(kEntries * 2 * dim, 2), {kEntries, 2 * dim});
    const TensorView weights = table.view().columns(0, dim), biases = table.view().columns(dim, 2 * dim);
    const auto normed = [&](const std::vector<int32_t>& which) {
      layer_norm_by_row(ctx(), x, put(which, {3}), weights, biases, 1e-6f, y);
      return get(y);
    };
    const std::vector<float> got = normed({-1, 1, kEntries});
    expect_same_bits(got, normed({0, 1, kEntries - 1}));
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
