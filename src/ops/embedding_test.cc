#include "ops/embedding.h"

#include <cmath>

#include "base/f16.h"
#include "ops/vector_quantise.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

class EmbeddingTest : public IsaTest {};

TensorView ids_of(const std::vector<int32_t>& ids, Shape shape) {
  return TensorView::of(ids.data(), DType::i32, shape);
}

// A table of the dtype, and its values; those of an f16 table are small integers, which it holds exactly.
struct Table {
  Table(DType dtype, int64_t entries, int64_t dim, unsigned seed) : tensor(dtype, {entries, dim}) {
    std::vector<float> random = random_values(entries * dim, seed);
    if (dtype == DType::f16)
      for (float& value : random) value = std::round(8 * value);
    values = rounded(random, dtype);
    for (size_t i = 0; i < random.size(); ++i) {
      if (dtype == DType::bf16)
        tensor.as<Bf16>()[i] = float_to_bf16(random[i]);
      else if (dtype == DType::f16)
        tensor.as<F16>()[i] = float_to_f16(random[i]);
      else
        tensor.as<float>()[i] = random[i];
    }
  }
  Tensor tensor;
  ref::Values values;
};

TEST_P(EmbeddingTest, RowsAreCopied) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const int64_t dim : {1, 17, 64}) {
      const Table table(dtype, 9, dim, 1);
      const std::vector<int32_t> ids = {8, 0, 3, 3, 7};
      std::vector<float> y(5 * static_cast<size_t>(dim + 2), -1.0f);
      gather_rows(ctx_, table.tensor, ids_of(ids, {5}), view_of(y, {5, dim + 2}).columns(1, dim + 1));
      for (int64_t row = 0; row < 5; ++row) {
        const float* got = y.data() + row * (dim + 2);
        EXPECT_EQ(got[0], -1.0f);
        EXPECT_EQ(got[dim + 1], -1.0f);
        for (int64_t d = 0; d < dim; ++d)
          ASSERT_EQ(got[1 + d], table.values[static_cast<size_t>(ids[static_cast<size_t>(row)] * dim + d)]);
      }
      gather_rows(ctx_, table.tensor, ids_of({}, {0}), view_of(y, {5, dim + 2}).slice(0, 0).columns(0, dim));
    }
}

// Ids and codes are columns of a matrix as well: here the second of three.
TEST_P(EmbeddingTest, OnlyTheFirstColumnOfIdsIsRead) {
  const Table table(DType::f32, 9, 4, 1);
  const std::vector<int32_t> ids = {8, 0, 3}, wide = {-1, 8, 99, -1, 0, 99, -1, 3, 99};
  std::vector<float> y(12), want(12);
  gather_rows(ctx_, table.tensor, ids_of(ids, {3}), view_of(want, {3, 4}));
  gather_rows(ctx_, table.tensor, ids_of(wide, {3, 3}).columns(1, 3), view_of(y, {3, 4}));
  EXPECT_EQ(y, want);
  std::vector<float> sums(12);
  gather_sum(ctx_, table.tensor, ids_of(wide, {3, 3}).columns(1, 2), view_of(sums, {3, 4}));
  EXPECT_EQ(sums, want);
}

TEST_P(EmbeddingTest, CodesGoToAColumn) {
  std::vector<float> x = {1, 0, 0, 1, -1, 0}, directions = {0, 1, 1, 0, -1, 0};
  std::vector<int32_t> codes(9, 77);
  nearest_code(ctx_, view_of(x, {3, 2}), view_of(directions, {3, 2}), ids_of(codes, {3, 3}).columns(1, 3));
  EXPECT_EQ(codes, (std::vector<int32_t>{77, 1, 77, 77, 0, 77, 77, 2, 77}));
}

TEST_P(EmbeddingTest, IdsOfOtherShapesAreOurFault) {
  const Table table(DType::f32, 4, 3, 1), codes(DType::f32, 6, 3, 1);
  std::vector<float> y(6);
  const std::vector<int32_t> ids(6);
  const TensorView out = view_of(y, {2, 3});
  EXPECT_NO_THROW(gather_rows(ctx_, table.tensor, ids_of(ids, {6}).slice(0, 2), out));
  EXPECT_THROW(gather_rows(ctx_, table.tensor, ids_of(ids, {6}), out), Error);
  EXPECT_THROW(gather_rows(ctx_, table.tensor, out.columns(0, 1), out), Error);
  EXPECT_THROW(gather_sum(ctx_, table.tensor, ids_of(ids, {6}).slice(0, 2), out), Error);
  const ColumnEmbedding embedding{table.tensor, codes.tensor, 3, 2, 1, 3, false};
  EXPECT_NO_THROW(embed_columns(ctx_, embedding, ids_of(ids, {2, 3}), out));
  EXPECT_THROW(embed_columns(ctx_, embedding, ids_of(ids, {3, 2}), out), Error);
  EXPECT_THROW(embed_columns(ctx_, embedding, ids_of(ids, {1, 6}).columns(0, 3), out), Error);
}

TEST_P(EmbeddingTest, SumsAreTakenInOrder) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    constexpr int64_t kDim = 37, kPerRow = 10, kRows = 21;
    const Table table(dtype, 50, kDim, 2);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < kRows * kPerRow; ++i) ids.push_back(static_cast<int32_t>(i * 7 % 50));
    std::vector<float> y(kRows * kDim);
    gather_sum(ctx_, table.tensor, ids_of(ids, {kRows, kPerRow}), view_of(y, {kRows, kDim}));
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t d = 0; d < kDim; ++d) {
        float want = 0;
        for (int64_t i = 0; i < kPerRow; ++i)
          want += static_cast<float>(
              table.values[static_cast<size_t>(ids[static_cast<size_t>(row * kPerRow + i)] * kDim + d)]);
        ASSERT_EQ(y[static_cast<size_t>(row * kDim + d)], want);
      }
  }
}

TEST_P(EmbeddingTest, ColumnsCarryCodesInTheSemanticRangeOnly) {
  constexpr int64_t kDim = 33, kBooks = 3, kSize = 5;
  for (const bool scale : {false, true}) {
    const Table text(DType::bf16, 20, kDim, 3), codes(DType::bf16, kBooks * kSize, kDim, 4);
    const ColumnEmbedding embedding{text.tensor, codes.tensor, kSize, kBooks, 10, 14, scale};
    // a text column whose codes are not looked at, both ends of the range, and the id after it
    const std::vector<int32_t> columns = {9, 99, -1, 0, 10, 4, 0, 2, 14, 1, 1, 1, 15, 0, 0, 0};
    std::vector<float> y(4 * kDim);
    embed_columns(ctx_, embedding, ids_of(columns, {4, 4}), view_of(y, {4, kDim}));
    ref::Values want, bound;
    for (int64_t row = 0; row < 4; ++row)
      for (int64_t d = 0; d < kDim; ++d) {
        const int32_t* column = columns.data() + row * 4;
        double v = text.values[static_cast<size_t>(column[0] * kDim + d)], size = std::abs(v);
        if (column[0] >= 10 && column[0] <= 14) {
          for (int64_t i = 0; i < kBooks; ++i) {
            const double code = codes.values[static_cast<size_t>((i * kSize + column[1 + i]) * kDim + d)];
            v += code;
            size += std::abs(code);
          }
          if (scale) v /= 2;
        }
        want.push_back(v);
        bound.push_back(5 * kUnit * size);
      }
    expect_close(y, want, bound);
  }
}

TEST_P(EmbeddingTest, IdsOutsideTheTableAreErrors) {
  const Table table(DType::f32, 4, 3, 1), codes(DType::f32, 6, 3, 1);
  std::vector<float> y(3);
  const auto gather = [&](int32_t id) {
    gather_rows(ctx_, table.tensor, ids_of({id}, {1}), view_of(y, {1, 3}));
  };
  EXPECT_NO_THROW(gather(3));
  EXPECT_THROW(gather(4), Error);
  EXPECT_THROW(gather(-1), Error);
  EXPECT_THROW(gather_sum(ctx_, table.tensor, ids_of({0, 4}, {1, 2}), view_of(y, {1, 3})), Error);
  const ColumnEmbedding embedding{table.tensor, codes.tensor, 3, 2, 1, 3, false};
  for (const std::vector<int32_t>& column :
       {std::vector<int32_t>{4, 0, 0}, {-1, 0, 0}, {1, 3, 0}, {1, 0, -1}, {3, 0, 3}})
    EXPECT_THROW(embed_columns(ctx_, embedding, ids_of(column, {1, 3}), view_of(y, {1, 3})), Error);
}

TEST_P(EmbeddingTest, NearestCodeIsTheFirstOfTheLargestCosines) {
  for (const int64_t entries : {1, 5, 16, 1024, 4099})
    for (const int64_t dim : {2, 8, 19}) {
      constexpr int64_t kRows = 70;
      std::vector<float> x = random_values(kRows * dim, 1, 3), directions = random_values(entries * dim, 2);
      for (int64_t e = 0; e < entries; ++e) {
        double norm = 0;
        for (int64_t d = 0; d < dim; ++d) norm += std::pow(directions[static_cast<size_t>(e * dim + d)], 2);
        for (int64_t d = 0; d < dim; ++d)
          directions[static_cast<size_t>(e * dim + d)] /= static_cast<float>(std::sqrt(norm));
      }
      std::fill_n(x.begin(), dim, 0.0f);  // ties with everything
      std::vector<int32_t> codes(kRows);
      nearest_code(ctx_, view_of(x, {kRows, dim}), view_of(directions, {entries, dim}),
                   ids_of(codes, {kRows}));
      EXPECT_EQ(codes[0], 0);
      for (int64_t row = 1; row < kRows; ++row) {
        const auto dot = [&](int64_t e) {
          double sum = 0;
          for (int64_t d = 0; d < dim; ++d)
            sum += static_cast<double>(x[static_cast<size_t>(row * dim + d)]) *
                   directions[static_cast<size_t>(e * dim + d)];
          return sum;
        };
        const int32_t code = codes[static_cast<size_t>(row)];
        ASSERT_GE(code, 0);
        ASSERT_LT(code, entries);
        double length = 0;
        for (int64_t d = 0; d < dim; ++d) length += std::pow(x[static_cast<size_t>(row * dim + d)], 2);
        for (int64_t e = 0; e < entries; ++e)  // rounding: dim products of total length |x|
          ASSERT_LE(dot(e), dot(code) + 2 * static_cast<double>(dim) * kUnit * std::sqrt(length))
              << e << " " << code;
      }
    }
}

TEST_P(EmbeddingTest, ExactTiesGoToTheFirstEntry) {
  constexpr int64_t kEntries = 100;
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, directions;
  for (int64_t e = 0; e < kEntries; ++e)
    for (int d = 0; d < 8; ++d) directions.push_back(e % 30 == 17 ? 0.125f * static_cast<float>(d) : 0.0f);
  std::vector<int32_t> codes(1);
  nearest_code(ctx_, view_of(x, {1, 8}), view_of(directions, {kEntries, 8}), ids_of(codes, {1}));
  EXPECT_EQ(codes[0], 17);
}

INSTANTIATE_TEST_SUITE_P(Isa, EmbeddingTest, every_isa(), name_of_isa);

}  // namespace
}  // namespace shoal::ops
