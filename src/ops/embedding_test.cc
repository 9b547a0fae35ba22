#include "ops/embedding.h"

#include <cmath>
#include <gmock/gmock.h>

#include "ops/rows_testing.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

constexpr DType kTableTypes[] = {DType::f32, DType::bf16, DType::f16};
constexpr int64_t kTableDims[] = {1, 7, 8, 17, 40, 64, 1024, 1032, 2061};

class EmbeddingTest : public RowsTestOf<OpTest> {
 protected:
  // A table of the dtype, and its values.
  struct Table {
    Tensor tensor;
    std::vector<float> values;
  };
  Table table(DType dtype, int64_t entries, int64_t dim, unsigned seed) {
    const std::vector<float> random = random_values(entries * dim, seed);
    return {put(random, {entries, dim}, dtype), rounded_to(random, dtype)};
  }
  Tensor ids_of(const std::vector<int32_t>& ids, Shape shape) { return put(ids, shape); }

  // op(y) writes exactly these rows, into rows of every surroundings.
  template <typename Op>
  void expect_exact_rows(const std::vector<float>& want, int64_t dim, Op op) {
    const int64_t rows = std::ssize(want) / dim;
    for (const auto& [skip, gap] : kSurroundings) {
      const Strided y = strided(std::vector<float>(want.size(), NAN), rows, dim, skip, gap);
      op(y.view);
      expect_same_bits(get(y.view), want);
      expect_gaps_untouched(y);
    }
  }
};

TEST_P(EmbeddingTest, RowsAreCopied) {
  const std::vector<int32_t> ids = {8, 0, 3, 3, 7};
  for (const DType dtype : kTableTypes)
    for (const int64_t dim : kTableDims) {
      const Table from = table(dtype, 9, dim, 1);
      const Tensor which = ids_of(ids, {5});
      std::vector<float> want;
      for (const int32_t id : ids)
        want.insert(want.end(), from.values.begin() + id * dim, from.values.begin() + (id + 1) * dim);
      expect_exact_rows(want, dim, [&](TensorView y) { gather_rows(ctx(), from.tensor, which, y); });
      gather_rows(ctx(), from.tensor, ids_of({}, {0}), garbage({0, dim}));
    }
}

// Ids are columns of a matrix as well: here the second of three.
TEST_P(EmbeddingTest, OnlyTheFirstColumnOfIdsIsRead) {
  const Table from = table(DType::f32, 9, 4, 1);
  const Tensor ids = ids_of({8, 0, 3}, {3}), wide = ids_of({-1, 8, 99, -1, 0, 99, -1, 3, 99}, {3, 3});
  const Tensor want = garbage({3, 4}), y = garbage({3, 4}), sums = garbage({3, 4});
  gather_rows(ctx(), from.tensor, ids, want);
  gather_rows(ctx(), from.tensor, wide.view().columns(1, 3), y);
  EXPECT_EQ(get(y), get(want));
  gather_sum(ctx(), from.tensor, wide.view().columns(1, 2), sums);
  EXPECT_EQ(get(sums), get(want));
}

TEST_P(EmbeddingTest, TablesMayBeStrided) {
  const std::vector<float> values = random_values(9 * 20, 1);
  const Tensor from = put(values, {9, 20}), y = garbage({3, 13});
  const std::vector<int32_t> ids = {8, 0, 5};
  gather_rows(ctx(), from.view().columns(4, 17), ids_of(ids, {3}), y);
  std::vector<float> want;
  for (const int32_t id : ids)
    want.insert(want.end(), values.begin() + id * 20 + 4, values.begin() + id * 20 + 17);
  expect_same_bits(get(y), want);
}

TEST_P(EmbeddingTest, IdsOfOtherShapesAreOurFault) {
  const Table from = table(DType::f32, 4, 3, 1), codes = table(DType::f32, 6, 3, 1);
  const Tensor memory = garbage({2, 3});
  const TensorView out = memory;
  const std::vector<int32_t> zeros(6);
  const Tensor ids = ids_of(zeros, {6}), two_rows = ids_of(zeros, {2, 3}), three_rows = ids_of(zeros, {3, 2}),
               one_row = ids_of(zeros, {1, 6});
  EXPECT_NO_THROW(gather_rows(ctx(), from.tensor, ids.view().slice(0, 2), out));
  EXPECT_THROW(gather_rows(ctx(), from.tensor, ids, out), Error);
  EXPECT_THROW(gather_rows(ctx(), from.tensor, out.columns(0, 1), out), Error);
  EXPECT_THROW(gather_sum(ctx(), from.tensor, ids.view().slice(0, 2), out), Error);
  const ColumnEmbedding embedding{from.tensor, codes.tensor, 3, 2, 1, 3, false};
  EXPECT_NO_THROW(embed_columns(ctx(), embedding, two_rows, out));
  EXPECT_THROW(embed_columns(ctx(), embedding, three_rows, out), Error);
  EXPECT_THROW(embed_columns(ctx(), embedding, one_row.view().columns(0, 3), out), Error);
}

TEST_P(EmbeddingTest, SumsAreTakenInOrder) {
  constexpr int64_t kPerRow = 10, kRows = 21;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < kRows * kPerRow; ++i) ids.push_back(static_cast<int32_t>(i * 7 % 50));
  const Tensor which = ids_of(ids, {kRows, kPerRow});
  for (const DType dtype : kTableTypes)
    for (const int64_t dim : kTableDims) {
      const Table from = table(dtype, 50, dim, 2);
      for (const int64_t first : {0, 1, 9}) {  // ten, nine and one in each row
        std::vector<float> want(static_cast<size_t>(kRows * dim));
        for (int64_t row = 0; row < kRows; ++row)
          for (int64_t i = first; i < kPerRow; ++i)
            for (int64_t d = 0; d < dim; ++d)
              want[static_cast<size_t>(row * dim + d)] +=
                  from.values[static_cast<size_t>(ids[static_cast<size_t>(row * kPerRow + i)] * dim + d)];
        expect_exact_rows(want, dim, [&](TensorView y) {
          gather_sum(ctx(), from.tensor, which.view().columns(first, kPerRow), y);
        });
      }
    }
}

TEST_P(EmbeddingTest, ColumnsCarryCodesInTheSemanticRangeOnly) {
  constexpr int64_t kDim = 33, kBooks = 3, kSize = 5;
  for (const bool scale : {false, true}) {
    const Table text = table(DType::bf16, 20, kDim, 3), codes = table(DType::bf16, kBooks * kSize, kDim, 4);
    const ColumnEmbedding embedding{text.tensor, codes.tensor, kSize, kBooks, 10, 14, scale};
    // a text column whose codes are not looked at, both ends of the range, and the id after it
    const std::vector<int32_t> columns = {9, 99, -1, 0, 10, 4, 0, 2, 14, 1, 1, 1, 15, 0, 0, 0};
    const Tensor y = garbage({4, kDim});
    embed_columns(ctx(), embedding, ids_of(columns, {4, 4}), y);
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
    expect_close(get(y), want, bound);
  }
}

TEST_P(EmbeddingTest, ColumnsHaveTheBitsOfThePortableKernels) {
  constexpr int64_t kBooks = 10, kSize = 5, kRows = 5;
  std::vector<int32_t> columns;
  for (const int32_t token : {9, 10, 14, 15, 12}) {
    columns.push_back(token);
    for (int32_t i = 0; i < kBooks; ++i) columns.push_back((i * 3 + token) % 5);
  }
  for (const DType dtype : kTableTypes)
    for (const int64_t dim : {1, 12, 33, 1024, 1040})
      for (const bool scale : {false, true}) {
        const auto embed = [&](TensorView y) {
          const Table text = table(dtype, 20, dim, 3), codes = table(dtype, kBooks * kSize, dim, 4);
          const ColumnEmbedding embedding{text.tensor, codes.tensor, kSize, kBooks, 10, 14, scale};
          embed_columns(ctx(), embedding, ids_of(columns, {kRows, 1 + kBooks}), y);
          return get(y);
        };
        expect_exact_rows(on_portable_cpu([&] { return embed(garbage({kRows, dim})); }), dim, embed);
      }
}

INSTANTIATE_TEST_SUITE_P(Machine, EmbeddingTest, testing::ValuesIn(every_machine()), name_of_machine);

// A GPU reads the nearest row (cuda/rows/rows_test.cc).
class EmbeddingOnCpus : public EmbeddingTest {};

TEST_P(EmbeddingOnCpus, IdsOutsideTheTableAreErrors) {
  const Table from = table(DType::f32, 4, 3, 1), codes = table(DType::f32, 6, 3, 1);
  const Tensor y = garbage({1, 3});
  const auto gather = [&](int32_t id) { gather_rows(ctx(), from.tensor, ids_of({id}, {1}), y); };
  EXPECT_NO_THROW(gather(3));
  EXPECT_THROW(gather(4), Error);
  EXPECT_THROW(gather(-1), Error);
  EXPECT_THROW(gather_sum(ctx(), from.tensor, ids_of({0, 4}, {1, 2}), y), Error);
  const ColumnEmbedding embedding{from.tensor, codes.tensor, 3, 2, 1, 3, false};
  for (const std::vector<int32_t>& column :
       {std::vector<int32_t>{4, 0, 0}, {-1, 0, 0}, {1, 3, 0}, {1, 0, -1}, {3, 0, 3}})
    EXPECT_THROW(embed_columns(ctx(), embedding, ids_of(column, {1, 3}), y), Error);
}

INSTANTIATE_TEST_SUITE_P(Cpu, EmbeddingOnCpus, testing::ValuesIn(every_cpu()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
